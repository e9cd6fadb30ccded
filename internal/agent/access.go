// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/statusstore/statusstore/internal/httpapi"
)

// role is what a peer may do on the socket.
type role uint8

const (
	roleNone   role = iota
	roleReader      // GET, but not what costs disk or shows the process
	roleWriter
)

// access says who may do what. Users and groups are numbers by now.
type access struct {
	own     int // the agent's user
	group   int // that of the socket; -1 for none
	writers principals
	readers principals
}

// principals are users and groups by number.
type principals struct{ users, groups []int }

// wide says whether the socket's mode has to let everybody connect, so that the
// lists can decide.
func (a access) wide() bool { return a.group < 0 && a.listed() }

// listed says whether there are lists; without them the socket's mode decides.
func (a access) listed() bool {
	return len(a.writers.users)+len(a.writers.groups)+len(a.readers.users)+len(a.readers.groups) > 0
}

// roleOf decides by the most specific: the user before its groups, and among
// equals the role that may do less.
func (a access) roleOf(p peer) role {
	in := func(groups []int) bool {
		return slices.ContainsFunc(groups, func(g int) bool { return slices.Contains(p.groups, g) })
	}
	switch {
	case p.uid == 0 || p.uid == a.own:
		return roleWriter
	case slices.Contains(a.readers.users, p.uid):
		return roleReader
	case slices.Contains(a.writers.users, p.uid):
		return roleWriter
	case in(a.readers.groups):
		return roleReader
	case in(a.writers.groups):
		return roleWriter
	case a.group >= 0 && !a.listed():
		return roleWriter // the mode let it in
	default:
		return roleNone
	}
}

// newAccess looks up what the configuration names.
func newAccess(c Config) (access, error) {
	a := access{own: os.Geteuid()}
	var err error
	if a.group, err = groupID(c.SocketGroup); err != nil {
		return a, err
	}
	for _, list := range []struct {
		field  string
		names  []string
		lookup func(string) (int, error)
		into   *[]int
	}{
		{"--allow-users", c.AllowUsers, lookupUser, &a.writers.users},
		{"--allow-groups", c.AllowGroups, lookupGroup, &a.writers.groups},
		{"--read-only-users", c.ReadOnlyUsers, lookupUser, &a.readers.users},
		{"--read-only-groups", c.ReadOnlyGroups, lookupGroup, &a.readers.groups},
	} {
		for _, name := range list.names {
			id, lookupErr := list.lookup(name)
			if lookupErr != nil {
				err = errors.Join(err, fmt.Errorf("%w: %s: %w", ErrConfig, list.field, lookupErr))
				continue
			}
			*list.into = append(*list.into, id)
		}
	}
	return a, err
}

// groupID looks a group up by name or number; -1 for "".
func groupID(group string) (int, error) {
	if group == "" {
		return -1, nil
	}
	id, err := lookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("%w: --socket-group: %w", ErrConfig, err)
	}
	return id, nil
}

func lookupUser(name string) (int, error) {
	if id, ok := number(name); ok {
		return id, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(u.Uid)
}

func lookupGroup(name string) (int, error) {
	if id, ok := number(name); ok {
		return id, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// number reads a user or group that is given by its number. The largest one means
// "nobody in particular" to the kernel.
func number(name string) (int, bool) {
	n, err := strconv.ParseUint(name, 10, 32)
	return int(n), err == nil && n < 1<<32-1
}

// peerConn is a connection whose peer is known.
type peerConn struct {
	net.Conn
	role role
}

type roleKey struct{}

// rememberRole puts a connection's role where its requests find it.
func rememberRole(ctx context.Context, c net.Conn) context.Context {
	if p, ok := c.(peerConn); ok {
		return context.WithValue(ctx, roleKey{}, p.role)
	}
	return ctx
}

// byRole refuses what a reader may not do. A request without a role comes from a
// listener that has none, and gets nothing.
func byRole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reading := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch got, _ := r.Context().Value(roleKey{}).(role); {
		case got == roleWriter:
			next.ServeHTTP(w, r)
		case got != roleReader:
			forbid(w, "the peer is unknown")
		case !reading:
			forbid(w, "this user may only read")
		case httpapi.Privileged(r.URL.Path):
			forbid(w, "this user may not read "+r.URL.Path)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
