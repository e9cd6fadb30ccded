// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/statusstore/statusstore/internal/logkey"
)

// peer is the process at the other end of a unix socket, as it was when it
// connected.
type peer struct {
	uid, pid int
	groups   []int // the effective one first, then the supplementary ones
}

// guardedListener lets in whom access has a role for. Without lists the mode of
// the socket alone would do as long as nobody changes it; this is the second lock.
type guardedListener struct {
	*socket
	access access
	log    *slog.Logger
	loud   *atMost
}

func newGuardedListener(s *socket, a access, log *slog.Logger) guardedListener {
	return guardedListener{socket: s, access: a, log: log, loud: &atMost{every: 30 * time.Second}}
}

// Accept returns the next connection of a peer that may use the socket.
func (l guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := credentials(conn)
		if err == nil {
			if r := l.access.roleOf(p); r != roleNone {
				return peerConn{conn, r}, nil
			}
		}
		// Anybody may be able to connect, and must not be able to fill the log.
		if n, ok := l.loud.next(time.Now()); ok {
			l.log.Warn("connection refused: this user is not allowed", logkey.PeerUID, p.uid, logkey.PeerPID, p.pid, logkey.Count, n, logkey.Err, err)
		}
		conn.Close()
	}
}

// atMost bounds how often something is said.
type atMost struct {
	every time.Duration

	mu   sync.Mutex
	last time.Time // guarded by mu, as is n
	n    int
}

// next says whether it is time, and how often it happened since the last time.
func (a *atMost) next(now time.Time) (int, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	if !a.last.IsZero() && now.Sub(a.last) < a.every {
		return 0, false
	}
	n := a.n
	a.last, a.n = now, 0
	return n, true
}
