// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// credentials asks the kernel who connected.
func credentials(conn *net.UnixConn) (peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var p peer
	var credErr error
	err = raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr != nil {
			return
		}
		p = peer{uid: int(cred.Uid), pid: int(cred.Pid), groups: []int{int(cred.Gid)}}
		var more []int
		if more, credErr = peerGroups(fd); credErr == nil {
			p.groups = append(p.groups, more...)
		}
	})
	return p, errors.Join(err, credErr)
}

// peerGroups returns the supplementary groups. SO_PEERCRED has only one.
func peerGroups(fd uintptr) ([]int, error) {
	for room := uint32(32); ; {
		groups := make([]uint32, room)
		size := room * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			all := make([]int, size/4)
			for i := range all {
				all[i] = int(groups[i])
			}
			return all, nil
		case unix.ERANGE: // size is what it takes
			room = max(size/4, room+1)
		case unix.ENOPROTOOPT, unix.ENODATA: // an old kernel; none
			return nil, nil
		default:
			return nil, fmt.Errorf("groups of peer: %w", errno)
		}
	}
}
