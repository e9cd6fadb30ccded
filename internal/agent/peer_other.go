// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package agent

import (
	"net"
	"os"
)

// credentials relies on the socket's mode where the kernel is asked differently;
// checkAccess refuses lists there.
func credentials(*net.UnixConn) (peer, error) {
	return peer{uid: os.Geteuid(), groups: []int{os.Getegid()}}, nil
}
