// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

// C57: starts a second agent on the same journal.
func TestC57(t *testing.T) {
	dir := shortDir(t)
	first := start(t, configFor(dir))
	first.set(newPod(0))
	for _, socket := range []string{"", filepath.Join(filepath.Dir(dir), "other.sock")} {
		c := configFor(dir)
		c.Socket = socket
		began := time.Now()
		_, err := begin(t, c)
		if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), journal.FileName) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("got %v, want %v", err, journal.ErrLocked)
		}
		if took := time.Since(began); took > slack*5*time.Second {
			t.Errorf("it took %v", took)
		}
		first.get(newPod(0))
	}
}

// TestSocketInUse has another journal, but the same socket.
func TestSocketInUse(t *testing.T) {
	first := start(t, configFor(shortDir(t)))
	c := configFor(shortDir(t))
	c.Socket = first.socket
	if _, err := begin(t, c); !errors.Is(err, ErrSocketInUse) || !strings.Contains(err.Error(), first.socket) {
		t.Errorf("got %v, want %v", err, ErrSocketInUse)
	}
	first.status()

	c.Socket = filepath.Join(filepath.Dir(first.socket), journal.FileName)
	if _, err := begin(t, c); !errors.Is(err, ErrNotSocket) {
		t.Errorf("got %v, want %v", err, ErrNotSocket)
	}
}

// C58: finds the socket of a dead agent.
func TestC58(t *testing.T) {
	dir := shortDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SocketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a killed process leaves it
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := start(t, configFor(dir))
	r.status()
	r.stop()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: got %v, want no socket", err)
	}
}

const nobody = 65534

// asNobody runs fn on a thread of another user, which then ends.
func asNobody(t *testing.T, fn func()) (done <-chan struct{}) {
	t.Helper()
	return asUser(t, nobody, nil, fn)
}

// asUser does the same for a user, whose group has the same number, with
// supplementary groups.
func asUser(t *testing.T, id int, groups []uint32, fn func()) (done <-chan struct{}) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		runtime.LockOSThread() // for good: the thread must not be used again
		list := uintptr(unsafe.Pointer(unsafe.SliceData(groups)))
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), list, 0); errno != 0 {
			t.Errorf("set groups: %v", errno)
			return
		}
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := syscall.RawSyscall(call, uintptr(id), uintptr(id), uintptr(id)); errno != 0 {
				t.Errorf("become another user: %v", errno)
				return
			}
		}
		fn()
	}()
	return finished
}

// connect is a plain system call, so that it happens on this thread.
func connect(path string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// C60: has another user try to connect while the socket is made and removed
// again and again.
func TestC60(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	// besieged restarts what listens, while only the mode of the socket, which must
	// be one of these at all times, keeps another user out.
	besieged := func(t *testing.T, path string, modes []uint32, restart func()) {
		t.Helper()
		for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var stop atomic.Bool
		defer stop.Store(true)
		var tries, got, present int
		odd := make(map[uint32]int)
		done := asNobody(t, func() {
			for !stop.Load() {
				tries++
				var info unix.Stat_t
				if err := unix.Lstat(path, &info); err == nil && !slices.Contains(modes, info.Mode&0o7777) {
					odd[info.Mode&0o7777]++
				}
				fd, err := connect(path)
				switch {
				case err == nil:
					got++
					unix.Close(fd)
				case errors.Is(err, unix.EACCES):
					present++
				}
			}
		})
		for range 100 {
			restart()
		}
		stop.Store(true)
		<-done
		if got > 0 || len(odd) > 0 {
			t.Errorf("in %d tries another user connected %d times, and saw these modes, and how often: %o", tries, got, odd)
		}
		if present == 0 {
			t.Errorf("the other user never met the socket in %d tries", tries)
		}
	}
	for name, tt := range map[string]struct {
		access access
		modes  []uint32
	}{
		"own user": {access{group: -1}, []uint32{0o600}},
		"group":    {access{group: 12345}, []uint32{0o600, 0o660}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "s")
			besieged(t, path, tt.modes, func() {
				s, err := listenSocket(t.Context(), path, tt.access)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond) // gives the other user a chance
				if err := errors.Join(s.Close(), s.remove()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	t.Run("agent", func(t *testing.T) {
		c := configFor(shortDir(t))
		r := start(t, c)
		r.set(newPod(0))
		r.stop()
		besieged(t, r.socket, []uint32{0o600}, func() { start(t, c).stop() })
	})
}

// C60: opens the socket's mode: the credentials still keep others out.
func TestC60_Peer(t *testing.T) {
	dir := shortDir(t)
	r := start(t, configFor(dir))
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o755, r.socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	var connectErr, readErr error
	<-asNobody(t, func() {
		var fd int
		if fd, connectErr = connect(r.socket); connectErr != nil {
			return
		}
		defer unix.Close(fd)
		_, _ = unix.Write(fd, []byte("GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n"))
		n, readErr = unix.Read(fd, make([]byte, 100))
	})
	if connectErr != nil {
		t.Fatal(connectErr)
	}
	if n > 0 {
		t.Errorf("another user got an answer (%v)", readErr)
	}
	r.logged("connection refused")
	r.status()
}

func TestSocketGroup(t *testing.T) {
	c := configFor(shortDir(t))
	c.SocketGroup, c.Socket = "65534", filepath.Join(filepath.Dir(c.DataDir), "run", "s")
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to any group")
	}
	r := start(t, c)
	info, err := os.Stat(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Gid; info.Mode().Perm() != 0o660 || got != 65534 {
		t.Errorf("got mode %04o, group %d", info.Mode().Perm(), got)
	}
}

// TestListen reads over TCP, and only that.
func TestListen(t *testing.T) {
	c := configFor(shortDir(t))
	c.Listen = "127.0.0.1:0"
	r := start(t, c)
	r.set(newPod(0))
	_, after, _ := strings.Cut(r.log.String(), "address=127.0.0.1:")
	port, _, _ := strings.Cut(after, "\n")
	do := func(method, host, path string) int {
		t.Helper()
		req, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, tt := range []struct {
		method, host, path string
		want               int
	}{
		{http.MethodGet, "127.0.0.1:" + port, "/api/v1/pods", http.StatusOK},
		{http.MethodGet, "localhost", "/api/v1/pods", http.StatusOK},
		{http.MethodGet, "[::1]:1", "/api/v1/pods", http.StatusOK},
		{http.MethodGet, "evil.example", "/api/v1/pods", http.StatusForbidden},
		{http.MethodGet, "localhost", httpapi.PathEvents + "?follow=false", http.StatusOK},
		{http.MethodGet, "localhost", httpapi.PathSnapshot, http.StatusForbidden},
		{http.MethodHead, "localhost", httpapi.PathSnapshot, http.StatusForbidden},
		{http.MethodGet, "localhost", "/debug/pprof/heap", http.StatusForbidden},
		{http.MethodPost, "localhost", httpapi.PathRetain, http.StatusMethodNotAllowed},
		{http.MethodPut, "localhost", "/api/v1/namespaces/default/pods/web-0/status", http.StatusMethodNotAllowed},
	} {
		if got := do(tt.method, tt.host, tt.path); got != tt.want {
			t.Errorf("%s %s as %s: got %d, want %d", tt.method, tt.path, tt.host, got, tt.want)
		}
	}
}

// TestListen_InUse is noticed before the journal is opened.
func TestListen_InUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir, _ := filled(t)
	c := configFor(dir)
	c.Listen = taken.Addr().String()
	if _, err := begin(t, c); !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), "--listen") {
		t.Fatalf("got %v, want %v", err, unix.EADDRINUSE)
	}
	c.Listen = ""
	if s := start(t, c).status(); s.Epoch != 2 {
		t.Errorf("got epoch %d, want 2: the start that failed left a trace", s.Epoch)
	}
}

// TestListen_Released: a start that fails later gives the port back.
func TestListen_Released(t *testing.T) {
	dir := shortDir(t)
	first := start(t, configFor(dir))
	c := configFor(dir)
	c.Listen = "127.0.0.1:0"
	free, err := net.Listen("tcp", c.Listen)
	if err != nil {
		t.Fatal(err)
	}
	c.Listen = free.Addr().String()
	free.Close()
	if _, err := begin(t, c); !errors.Is(err, journal.ErrLocked) {
		t.Fatalf("got %v, want %v", err, journal.ErrLocked)
	}
	first.stop()
	start(t, c)
}

// C62: sends more header than is allowed.
func TestC62_Header(t *testing.T) {
	r := start(t, configFor(shortDir(t)))
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ")); err != nil {
		t.Fatal(err)
	}
	piece := []byte(strings.Repeat("a", 64<<10))
	sent := 0
	for ; sent < 100<<20; sent += len(piece) {
		if _, err := conn.Write(piece); err != nil {
			break // closed
		}
	}
	answer := make([]byte, 100)
	n, _ := conn.Read(answer)
	if sent >= 100<<20 || n > 0 && !strings.Contains(string(answer[:n]), " 431 ") {
		t.Errorf("after %d bytes: got %q", sent, answer[:n])
	}
	r.status()
}
