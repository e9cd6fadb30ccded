// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statusstore/statusstore/internal/httpapi"
)

func TestAccess_RoleOf(t *testing.T) {
	const own, group = 10, 20
	lists := access{
		own: own, group: -1,
		writers: principals{users: []int{1, 2}, groups: []int{100, 102}},
		readers: principals{users: []int{2, 3}, groups: []int{101, 102}},
	}
	grouped := lists
	grouped.group = group
	tests := []struct {
		name   string
		access access
		uid    int
		groups []int
		want   role
	}{
		{"root", access{own: own, group: -1}, 0, nil, roleWriter},
		{"own user", access{own: own, group: -1}, own, nil, roleWriter},
		{"another user", access{own: own, group: -1}, 1, nil, roleNone},
		{"whom the mode lets in", access{own: own, group: group}, 1, []int{group}, roleWriter},
		{"root in spite of lists", lists, 0, []int{101}, roleWriter},
		{"allowed user", lists, 1, nil, roleWriter},
		{"reader", lists, 3, nil, roleReader},
		{"allowed and reader", lists, 2, nil, roleReader},
		{"allowed group", lists, 9, []int{9, 100}, roleWriter},
		{"reading group", lists, 9, []int{101}, roleReader},
		{"group in both lists", lists, 9, []int{102}, roleReader},
		{"groups of both kinds", lists, 9, []int{100, 101}, roleReader},
		{"reader in an allowed group", lists, 3, []int{100}, roleReader},
		{"allowed user in a reading group", lists, 1, []int{101}, roleWriter},
		{"stranger", lists, 9, []int{9}, roleNone},
		{"group's member who is on no list", grouped, 9, []int{group}, roleNone},
		{"group's member who is", grouped, 1, []int{group}, roleWriter},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.access.roleOf(peer{uid: tt.uid, groups: tt.groups}); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// asked is the answer to one request of another user; code 0 is a closed connection.
type asked struct {
	code int
	body string
}

// ask sends one request over a connection that another user made.
func ask(t *testing.T, path string, id int, groups []uint32, method, url, body string) asked {
	t.Helper()
	fd := -1
	var err error
	<-asUser(t, id, groups, func() { fd, err = connect(path) })
	if err != nil {
		t.Fatalf("user %d: connect: %v", id, err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req, err := http.NewRequest(method, "http://statusstore"+url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	if err := req.Write(conn); err != nil {
		return asked{}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return asked{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return asked{resp.StatusCode, string(text)}
}

// openSocket is a socket path that others can reach, and a configuration with it.
func openSocket(t *testing.T) Config {
	t.Helper()
	c := configFor(shortDir(t))
	parent := filepath.Dir(c.DataDir)
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(parent, "run", "s")
	return c
}

// TestAccess_Socket asks as other users, whose credentials the kernel vouches for.
func TestAccess_Socket(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const writer, reader, stranger, readers = 3001, 3002, 3003, 3100
	c := openSocket(t)
	c.AllowUsers, c.ReadOnlyUsers, c.ReadOnlyGroups = []string{"3001"}, []string{"3002"}, []string{"3100"}
	c.Profiling = true
	r := start(t, c)
	info, err := os.Stat(r.socket)
	if err != nil || info.Mode().Perm() != wideMode {
		t.Fatalf("got mode %v, %v, want %04o", info.Mode(), err, wideMode)
	}
	r.set(newPod(0))
	const retain = `{"uids":["uid-0"]}`
	tests := []struct {
		name        string
		id          int
		groups      []uint32
		method, url string
		want        int
	}{
		{"writer reads", writer, nil, http.MethodGet, "/api/v1/pods", 200},
		{"writer writes", writer, nil, http.MethodPost, httpapi.PathRetain, 200},
		{"writer takes a snapshot", writer, nil, http.MethodGet, httpapi.PathSnapshot, 200},
		{"writer profiles", writer, nil, http.MethodGet, "/debug/pprof/cmdline", 200},
		{"reader reads", reader, nil, http.MethodGet, "/api/v1/pods", 200},
		{"reader looks at metrics", reader, nil, http.MethodGet, "/metrics", 200},
		{"reader writes", reader, nil, http.MethodPost, httpapi.PathRetain, 403},
		{"reader patches", reader, nil, http.MethodPatch, httpapi.PodStatusPath("default", "web-0"), 403},
		{"reader takes a snapshot", reader, nil, http.MethodGet, httpapi.PathSnapshot, 403},
		{"reader takes a snapshot in disguise", reader, nil, http.MethodGet, "/statusstore/v1/%73napshot", 403},
		{"reader profiles", reader, nil, http.MethodGet, "/debug/pprof/heap", 403},
		{"stranger in a reading group", stranger, []uint32{7, readers}, http.MethodGet, "/api/v1/pods", 200},
		{"stranger in a reading group writes", stranger, []uint32{7, readers}, http.MethodPost, httpapi.PathRetain, 403},
		{"stranger", stranger, nil, http.MethodGet, "/healthz", 0},
		{"stranger in another group", stranger, []uint32{7}, http.MethodGet, "/healthz", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, r.socket, tt.id, tt.groups, tt.method, tt.url, retain)
			if got.code != tt.want {
				t.Errorf("got %d: %.200s, want %d", got.code, got.body, tt.want)
			}
			if got.code == 403 && !strings.Contains(got.body, `"kind":"Status"`) {
				t.Errorf("got %s, want a Status", got.body)
			}
		})
	}
	if got := len(r.events()); got != 1 {
		t.Errorf("got %d events, want the one of the agent's user", got)
	}
	r.logged("connection refused")
	if n := strings.Count(r.log.String(), "connection refused"); n != 1 {
		t.Errorf("got %d lines about refused connections, want 1 in 30 s", n)
	}
}

// TestPeerGroups has more groups than the first guess has room for.
func TestPeerGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have any groups")
	}
	path := filepath.Join(t.TempDir(), "s")
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := listenSocket(t.Context(), path, access{group: -1, writers: principals{users: []int{5}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	groups := make([]uint32, 100)
	for i := range groups {
		groups[i] = uint32(1000 + i)
	}
	var fd int
	var connectErr error
	<-asUser(t, 5, groups, func() { fd, connectErr = connect(path) })
	if connectErr != nil {
		t.Fatal(connectErr)
	}
	defer unix.Close(fd)
	conn, err := s.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := credentials(conn)
	if err != nil {
		t.Fatal(err)
	}
	if p.uid != 5 || len(p.groups) != 101 || p.groups[100] != 1099 {
		t.Errorf("got %+v, want user 5 with 101 groups", p)
	}
}

// TestProfiling is off unless asked for, and never served over TCP.
func TestProfiling(t *testing.T) {
	r := start(t, configFor(shortDir(t)))
	if code, _, err := r.try(http.MethodGet, "/debug/pprof/", nil); err != nil || code != http.StatusNotFound {
		t.Errorf("by default: got %d, %v, want 404", code, err)
	}
	c := configFor(shortDir(t))
	c.Profiling, c.Listen = true, "127.0.0.1:0"
	r = start(t, c)
	code, body, err := r.try(http.MethodGet, "/debug/pprof/goroutine?debug=1", nil)
	if err != nil || code != http.StatusOK || !strings.Contains(string(body), "goroutine profile") {
		t.Errorf("asked for: got %d, %v: %.100s", code, err, body)
	}
	_, after, _ := strings.Cut(r.log.String(), "address=127.0.0.1:")
	port, _, _ := strings.Cut(after, "\n")
	resp, err := http.Get("http://127.0.0.1:" + port + "/debug/pprof/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("over TCP: got %d, want 403", resp.StatusCode)
	}
}
