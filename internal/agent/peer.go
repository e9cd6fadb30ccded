// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"net"
	"os"

	"github.com/statusstore/statusstore/internal/logkey"
)

// peer is the process at the other end of a unix socket.
type peer struct {
	uid, gid uint32
	pid      int32
}

// guardedListener lets in root, the agent's own user and, with a group, whom the
// mode of the socket lets in. The mode alone would do as long as nobody changes
// it; this is the second lock.
type guardedListener struct {
	*socket
	group bool
	log   *slog.Logger
}

// Accept returns the next connection of a peer that may use the socket.
func (l guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := credentials(conn)
		if err == nil && l.admits(p) {
			return conn, nil
		}
		l.log.Warn("connection refused: neither root nor the agent's user", logkey.PeerUID, p.uid, logkey.PeerPID, p.pid, logkey.Err, err)
		conn.Close()
	}
}

func (l guardedListener) admits(p peer) bool {
	return l.group || p.uid == 0 || int(p.uid) == os.Geteuid()
}
