// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net"
	"sync"
)

// cable is a TCP proxy on a port of its own that can be cut: then nobody listens
// there and all connections are closed, as if the server had died.
type cable struct {
	target  string
	address string

	mu       sync.Mutex // guards the fields below
	listener net.Listener
	conns    map[net.Conn]struct{}
	served   sync.WaitGroup
}

func newCable(target string) (*cable, error) {
	c := &cable{target: target, address: "127.0.0.1:0", conns: map[net.Conn]struct{}{}}
	if err := c.join(); err != nil {
		return nil, err
	}
	return c, nil
}

// join listens, after a cut on the same port as before.
func (c *cable) join() error {
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener, c.address = l, l.Addr().String()
	c.served.Go(func() { c.accept(l) })
	return nil
}

func (c *cable) accept(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return // the cable was cut
		}
		far, err := net.Dial("tcp", c.target)
		if err != nil {
			near.Close()
			continue
		}
		c.mu.Lock()
		cut := c.listener != l
		if !cut {
			c.conns[near], c.conns[far] = struct{}{}, struct{}{}
		}
		c.mu.Unlock()
		if cut {
			near.Close()
			far.Close()
			return
		}
		c.served.Go(func() { c.pipe(near, far) })
		c.served.Go(func() { c.pipe(far, near) })
	}
}

// pipe ends both directions when one ends: HTTP/2 over TLS has no half-close.
func (c *cable) pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // how a connection ends does not matter here
	to.Close()
	from.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, from)
}

// cut closes everything and returns when nothing of it runs any more.
func (c *cable) cut() {
	c.mu.Lock()
	if c.listener != nil {
		c.listener.Close()
		c.listener = nil
	}
	for conn := range c.conns {
		conn.Close()
	}
	c.mu.Unlock()
	c.served.Wait()
}
