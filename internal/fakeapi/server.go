// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"

	"k8s.io/client-go/rest"
)

// Server is an API server for pods. Make one with Listen, ListenInMemory or New.
type Server struct {
	options  Options
	store    *store
	faults   faults
	requests requestLog
	network  network // nil without a listener
	http     *http.Server
	done     chan struct{}  // closed by Close
	serving  sync.WaitGroup // accept loops
	conns    sync.WaitGroup // connections

	// switching makes one network change wait for the one before. It is taken
	// before mu.
	switching sync.Mutex

	// mu guards the fields below.
	mu       sync.Mutex
	listener net.Listener  // nil while the network is down
	lost     chan struct{} // closed while the network is down
	down     bool
	closed   bool
	cut      chan struct{} // closed and replaced to cut the watches
}

// New returns a server that is reached only through its Handler.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options:  o,
		store:    newStore(o),
		requests: requestLog{limit: o.RequestLog, counts: map[Verb]int{}},
		done:     make(chan struct{}),
		cut:      make(chan struct{}),
		lost:     make(chan struct{}),
	}
	s.http = &http.Server{
		Handler:   s.Handler(),
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnState: s.trackConn,
	}
	return s, nil
}

// Listen returns a server that serves on Options.Address until Close.
func Listen(o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	return s.start(&tcpNetwork{address: s.options.Address})
}

// ListenInMemory returns a server that serves over net.Pipe until Close. Only
// clients made from its RESTConfig reach it. Its waits are durable in the sense
// of testing/synctest; call it inside the bubble.
func ListenInMemory(o Options) (*Server, error) {
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	return s.start(&pipeNetwork{})
}

func (s *Server) start(n network) (*Server, error) {
	s.network = n
	if err := s.NetworkUp(); err != nil {
		return nil, err
	}
	return s, nil
}

// trackConn lets Close wait for the connections.
func (s *Server) trackConn(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}

// NetworkUp accepts connections again, on the same address as before.
func (s *Server) NetworkUp() error {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.down {
		s.down, s.lost = false, make(chan struct{})
	}
	if s.network == nil || s.listener != nil {
		return nil
	}
	listener, err := s.network.listen()
	if err != nil {
		s.down = true
		close(s.lost)
		return fmt.Errorf("listen: %w", err)
	}
	s.listener = listener
	s.serving.Go(func() {
		if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.options.Logger.Error("accept loop ends", "err", err)
		}
	})
	return nil
}

// NetworkDown refuses new connections and cuts the open ones, watches included,
// until NetworkUp. Without a listener each request is aborted instead.
func (s *Server) NetworkDown() {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.mu.Lock()
	if !s.down {
		s.down = true
		close(s.lost)
	}
	listener := s.listener
	s.listener = nil
	s.mu.Unlock()
	if listener != nil {
		s.network.down(listener)
	}
	s.CutWatches()
}

// CutWatches breaks the connections of all watches that are open.
func (s *Server) CutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *Server) cutSignal() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// lostSignal is closed when the network goes down.
func (s *Server) lostSignal() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *Server) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends all requests and watches, and returns when no goroutine of the
// server is left. The stored pods and the log can still be read.
func (s *Server) Close() error {
	s.switching.Lock()
	defer s.switching.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.listener = nil
	s.mu.Unlock()

	err := s.http.Close()
	if s.network != nil {
		s.network.release()
	}
	// The accept loops first: they are what adds to conns.
	s.serving.Wait()
	s.conns.Wait()
	return err
}

// URL returns the base URL of the server, "" if it has no listener.
func (s *Server) URL() string {
	if s.network == nil {
		return ""
	}
	return s.network.url()
}

// RESTConfig returns a configuration for clients of the server, without limits
// on their rate.
func (s *Server) RESTConfig() *rest.Config {
	config := &rest.Config{Host: s.URL(), QPS: -1}
	if pipes, ok := s.network.(*pipeNetwork); ok {
		config.Dial = pipes.dial
	}
	return config
}

// WriteKubeconfig writes a kubeconfig for the server that only the owner can
// read. It fails with ErrNoAddress if the server doesn't listen on TCP.
func (s *Server) WriteKubeconfig(path string) (err error) {
	if _, ok := s.network.(*tcpNetwork); !ok {
		return fmt.Errorf("write kubeconfig %s: %w", path, ErrNoAddress)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// The file may have been there with another mode.
	if err := file.Chmod(0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if _, err := fmt.Fprintf(file, kubeconfig, s.URL()); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: fakeapi
  cluster:
    server: %s
users:
- name: fakeapi
  user: {}
contexts:
- name: fakeapi
  context:
    cluster: fakeapi
    user: fakeapi
current-context: fakeapi
`
