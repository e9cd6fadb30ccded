// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// network is how clients reach the server.
type network interface {
	listen() (net.Listener, error) // first time, or again after down
	down(net.Listener)             // refuse new connections, cut the open ones
	release()
	url() string
}

var (
	_ network = (*tcpNetwork)(nil)
	_ network = (*pipeNetwork)(nil)
)

// tcpNetwork keeps its port while it is down, so that nobody else gets it and
// a client that dials it isn't connected to itself.
type tcpNetwork struct {
	// mu guards the fields below.
	mu      sync.Mutex
	address string
	holder  io.Closer
}

func (n *tcpNetwork) listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	listener, err := net.Listen("tcp", n.address)
	if err != nil {
		return nil, err
	}
	n.address = listener.Addr().String()
	n.dropHolder()
	return newTracked(listener), nil
}

func (n *tcpNetwork) down(listener net.Listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// Closing fails only if it is closed already.
	_ = listener.Close()
	if holder, err := holdPort(listener.Addr()); err == nil {
		n.holder = holder
	}
}

func (n *tcpNetwork) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropHolder()
}

func (n *tcpNetwork) dropHolder() {
	if n.holder != nil {
		_ = n.holder.Close() // a socket that was never used
		n.holder = nil
	}
}

func (n *tcpNetwork) url() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return "http://" + n.address
}

// tracked is a listener whose Close also resets the connections that it has
// accepted.
type tracked struct {
	net.Listener

	// mu guards the fields below.
	mu     sync.Mutex
	conns  map[*trackedConn]struct{}
	closed bool
}

func newTracked(listener net.Listener) *tracked {
	return &tracked{Listener: listener, conns: map[*trackedConn]struct{}{}}
}

func (t *tracked) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tc := &trackedConn{Conn: conn, listener: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		tc.reset()
		return nil, net.ErrClosed
	}
	t.conns[tc] = struct{}{}
	return tc, nil
}

func (t *tracked) Close() error {
	err := t.Listener.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for conn := range t.conns {
		conn.reset()
	}
	clear(t.conns)
	return err
}

type trackedConn struct {
	net.Conn
	listener *tracked
}

func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// reset closes the connection so that the client notices at once, whatever is
// still in its buffers.
func (c *trackedConn) reset() {
	if lingerer, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		_ = lingerer.SetLinger(0) // without it the end is only gentler
	}
	_ = c.Conn.Close()
}

// pipeNetwork connects clients of the same process by net.Pipe.
type pipeNetwork struct {
	// mu guards current.
	mu      sync.Mutex
	current *pipeListener // nil while down
}

func (n *pipeNetwork) listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = &pipeListener{incoming: make(chan net.Conn), done: make(chan struct{})}
	return newTracked(n.current), nil
}

func (n *pipeNetwork) down(listener net.Listener) {
	n.release()
	_ = listener.Close() // never fails
}

func (n *pipeNetwork) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = nil
}

func (n *pipeNetwork) url() string { return "http://fakeapi" }

// dial refuses as TCP does, because clients look for that very error.
func (n *pipeNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	n.mu.Lock()
	listener := n.current
	n.mu.Unlock()
	if listener == nil {
		return nil, refused
	}
	client, server := net.Pipe()
	select {
	case listener.incoming <- server:
		return client, nil
	case <-listener.done:
		return nil, refused
	case <-ctx.Done():
		return nil, fmt.Errorf("dial %s: %w", address, context.Cause(ctx))
	}
}

type pipeListener struct {
	incoming chan net.Conn
	done     chan struct{}
	close    sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.incoming:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.close.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "fakeapi" }
