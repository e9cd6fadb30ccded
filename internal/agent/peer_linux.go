// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net"

	"golang.org/x/sys/unix"
)

// credentials asks the kernel who connected.
func credentials(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return peer{}, err
	}
	if credErr != nil {
		return peer{}, credErr
	}
	return peer{uid: cred.Uid, gid: cred.Gid, pid: cred.Pid}, nil
}
