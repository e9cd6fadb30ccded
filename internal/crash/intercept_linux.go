// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package crash

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var numbers = map[Syscall][]uint32{
	Fsync:     {unix.SYS_FSYNC},
	Fdatasync: {unix.SYS_FDATASYNC},
	Pwrite:    {unix.SYS_PWRITE64},
	Fallocate: {unix.SYS_FALLOCATE},
	Ftruncate: {unix.SYS_FTRUNCATE},
	Link:      {unix.SYS_LINKAT},
	Rename:    {unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2},
	Unlink:    {unix.SYS_UNLINKAT},
	Flock:     {unix.SYS_FLOCK},
}

// notification is struct seccomp_notif, response struct seccomp_notif_resp.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// Intercept hands all calls of these kinds, by any thread of this process, to
// handle. It can be done once in a process and not be undone. The error is
// errors.ErrUnsupported, with the reason, where the system does not permit it.
func Intercept(handle Handler, calls ...Syscall) error {
	names := map[uint32]Syscall{}
	for _, c := range calls {
		for _, nr := range numbers[c] {
			names[nr] = c
		}
	}
	listener, err := install(names)
	if err != nil {
		return fmt.Errorf("intercept system calls: %w: %w", errors.ErrUnsupported, err)
	}
	go serve(listener, names, handle)
	return nil
}

// install loads the filter into all threads and returns its listener.
func install(names map[uint32]Syscall) (listener int, err error) {
	// The process is its own judge and has one architecture, so the filter does
	// not look at that.
	code := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	left := len(names)
	for nr := range names {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(left), K: nr})
		left--
	}
	code = append(code,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	const flags = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// A signal must not make the kernel ask about the same call twice: counts
	// would be wrong. Kernels before 5.19 don't know that flag.
	for _, f := range []uintptr{flags | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, flags} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, f, uintptr(unsafe.Pointer(&program)))
		runtime.KeepAlive(code)
		if errno == 0 {
			return int(fd), nil
		}
		err = fmt.Errorf("seccomp: %w", errno)
		if errno != unix.EINVAL {
			break
		}
	}
	return 0, err
}

func serve(listener int, names map[uint32]Syscall, handle Handler) {
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // ENOENT: the caller was killed meanwhile
			continue
		default:
			panic(fmt.Sprintf("receive from seccomp listener: %v", errno))
		}
		r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		switch e := handle(describe(names[uint32(n.nr)], &n)); {
		case e == Short && uint32(n.nr) == unix.SYS_PWRITE64:
			r.val, r.errno, r.flags = writeHalf(&n)
		case e != 0:
			r.errno, r.flags = -int32(e), 0
		}
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
		if errno != 0 && errno != unix.ENOENT {
			panic(fmt.Sprintf("answer seccomp listener: %v", errno))
		}
	}
}

// writeHalf does half of a pwrite64 for its caller, whose memory is ours, by a
// call that is never intercepted.
func writeHalf(n *notification) (written int64, errno int32, flags uint32) {
	half := n.args[2] / 2
	if half == 0 {
		return 0, 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	vector := [2]uint64{n.args[1], half} // struct iovec
	got, _, err := unix.Syscall6(unix.SYS_PWRITEV, uintptr(n.args[0]), uintptr(unsafe.Pointer(&vector)), 1, uintptr(n.args[3]), 0, 0)
	if err != 0 {
		return 0, -int32(err), 0
	}
	return int64(got), 0, 0
}

func describe(name Syscall, n *notification) Call {
	c := Call{Name: name, FD: -1}
	switch name {
	case Link, Rename, Unlink:
		return c
	case Pwrite:
		c.Offset, c.Length = int64(n.args[3]), int64(n.args[2])
	}
	c.FD = int(int32(n.args[0]))
	c.Path, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(c.FD))
	return c
}

// KillSelf ends this process as SIGKILL from outside would.
func KillSelf() syscall.Errno {
	unix.Kill(unix.Getpid(), unix.SIGKILL) //nolint:errcheck // it does not return
	select {}
}
