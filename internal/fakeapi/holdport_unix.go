// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fakeapi

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// holdPort binds a port without listening: connections to it are refused, and
// the system gives it to nobody, not even as the near end of a connection.
func holdPort(addr net.Addr) (io.Closer, error) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("hold port: %v is not a TCP address", addr)
	}
	family, sockaddr := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: tcp.Port, Addr: [16]byte(tcp.IP.To16())})
	if ip := tcp.IP.To4(); ip != nil {
		family, sockaddr = syscall.AF_INET, &syscall.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip)}
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("hold port: %w", os.NewSyscallError("socket", err))
	}
	socket := os.NewFile(uintptr(fd), "held port")
	// Otherwise the connections just cut keep the address busy.
	err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	if err == nil {
		err = os.NewSyscallError("bind", syscall.Bind(fd, sockaddr))
	}
	if err != nil {
		_ = socket.Close() // the error that counts is the first
		return nil, fmt.Errorf("hold port: %w", err)
	}
	return socket, nil
}
