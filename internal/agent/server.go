// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10 // beyond, net/http answers 431
	// serverGrace is how long requests in flight may take at the end.
	serverGrace = 500 * time.Millisecond
)

// server is an HTTP server on one listener. Deadlines of bodies and answers are
// set by the handler, for each write anew: watches have no fixed end.
type server struct {
	http     *http.Server
	listener net.Listener
}

func newServer(l net.Listener, h http.Handler, log *slog.Logger) *server {
	return &server{
		listener: l,
		http: &http.Server{
			Handler:           h,
			ConnContext:       rememberRole,
			ReadHeaderTimeout: readHeaderTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// serve returns nil after stop.
func (s *server) serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %v: %w", s.listener.Addr(), err)
	}
	return nil
}

// stop accepts nothing more, lets requests end, and cuts off what is left. Streams
// have been told to end before. It removes a unix socket.
func (s *server) stop(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if closeErr := s.listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
		err = errors.Join(err, closeErr) // open, but never served
	}
	if guarded, ok := s.listener.(guardedListener); ok {
		err = errors.Join(err, guarded.remove())
	}
	return err
}
