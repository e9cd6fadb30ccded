// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package agent

import (
	"net"
	"os"
)

// credentials relies on the socket's mode where the kernel is asked differently.
func credentials(*net.UnixConn) (peer, error) {
	return peer{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
}
