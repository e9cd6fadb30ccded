// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// notifySocket is a supervisor's end of the socket.
func notifySocket(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	return conn
}

// hears returns the next message.
func hears(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(slack * 5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1024)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatalf("the supervisor heard nothing: %v", err)
	}
	return string(b[:n])
}

// TestSupervisor hears when the agent is ready, that it lives, and that it stops.
func TestSupervisor(t *testing.T) {
	for _, name := range []string{filepath.Join(filepath.Dir(shortDir(t)), "n"), "@statusstore-test-" + strconv.Itoa(os.Getpid())} {
		conn := notifySocket(t, name)
		t.Setenv("WATCHDOG_USEC", "100000")
		t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
		r := start(t, configFor(shortDir(t)))
		seen := map[string]int{}
		for seen["WATCHDOG=1"] < 3 || seen["READY=1"] < 1 {
			first, rest, _ := strings.Cut(hears(t, conn), "\n")
			seen[first]++
			if first == "READY=1" && rest != "STATUS=serving on "+r.socket {
				t.Errorf("got status %q", rest)
			}
		}
		stopped := make(chan struct{})
		go func() { defer close(stopped); r.stop() }()
		for hears(t, conn) != "STOPPING=1" {
		}
		<-stopped
		if seen["READY=1"] != 1 {
			t.Errorf("got %v, want ready once", seen)
		}
	}
}

// TestSupervisor_Silence: what does not answer, or not well, is not reported alive.
func TestSupervisor_Silence(t *testing.T) {
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	for name, handler := range map[string]http.Handler{"accepts nothing": nil, "hangs": hangs, "is not alive": fails} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Dir(shortDir(t))
			conn := notifySocket(t, filepath.Join(dir, "n"))
			s := supervisor{socket: filepath.Join(dir, "n"), watchdog: 20 * time.Millisecond}
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if handler != nil {
				server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
				server.Start()
				defer server.Close()
			}
			fed := make(chan struct{})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			go func() { defer close(fed); s.feed(ctx, l.Addr().String()) }()
			<-fed
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 100)); err == nil {
				t.Errorf("got %d bytes, want silence", n)
			}
		})
	}
}

// TestSupervisor_Deaf: one who does not read what he is told does not keep the agent
// from its end.
func TestSupervisor_Deaf(t *testing.T) {
	notifySocket(t, filepath.Join(filepath.Dir(shortDir(t)), "n"))
	s := newSupervisor(os.Getenv)
	var err error
	for range 100_000 {
		if err = s.tell(t.Context(), "WATCHDOG=1"); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

func TestSupervisor_Environment(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	tests := []struct {
		name string
		env  map[string]string
		want supervisor
	}{
		{"none", nil, supervisor{}},
		{"no watchdog", map[string]string{"NOTIFY_SOCKET": "/s"}, supervisor{socket: "/s"}},
		{"watchdog", map[string]string{"NOTIFY_SOCKET": "/s", "WATCHDOG_USEC": "2000000"}, supervisor{"/s", 2 * time.Second}},
		{"its own", map[string]string{"WATCHDOG_USEC": "1", "WATCHDOG_PID": own}, supervisor{"", time.Microsecond}},
		{"another's", map[string]string{"WATCHDOG_USEC": "1", "WATCHDOG_PID": own + "0"}, supervisor{}},
		{"nonsense", map[string]string{"WATCHDOG_USEC": "x"}, supervisor{}},
		{"never", map[string]string{"WATCHDOG_USEC": "0"}, supervisor{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := newSupervisor(func(name string) string { return tt.env[name] }); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
