// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
)

// serveSocket serves a handler on a unix socket and returns its path.
func serveSocket(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	// The path of a socket is short; t.TempDir may be long.
	dir, err := os.MkdirTemp("", "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

func echo(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.Method, r.URL.RequestURI())
}

func TestG12_Proxy(t *testing.T) {
	client := socket.New(serveSocket(t, echo))
	t.Cleanup(client.Close)
	proxy := newProxyHandler(client, slog.New(slog.DiscardHandler))
	tests := []struct {
		name, method, host, path string
		code                     int
	}{
		{"pods", "GET", "127.0.0.1:8001", "/api/v1/pods?watch=1", 200},
		{"discovery", "GET", "localhost:8001", "/apis", 200},
		{"IPv6", "GET", "[::1]:8001", "/api", 200},
		{"health", "HEAD", "127.0.0.1", "/healthz", 200},
		{"records", "GET", "127.0.0.1", "/statusstore/v1/pods/uid/history", 200},
		{"name of a web page", "GET", "evil.example:8001", "/api/v1/pods", 403},
		{"address of the machine", "GET", "192.0.2.1:8001", "/api/v1/pods", 403},
		{"PUT", "PUT", "127.0.0.1", "/api/v1/namespaces/a/pods/b/status", 405},
		{"POST", "POST", "127.0.0.1", "/statusstore/v1/retain", 405},
		{"DELETE", "DELETE", "127.0.0.1", "/api/v1/namespaces/a/pods/b", 405},
		{"snapshot", "GET", "127.0.0.1", "/statusstore/v1/snapshot", 404},
		{"round about", "GET", "127.0.0.1", "/statusstore/v1/pods/../snapshot", 404},
		{"longer word", "GET", "127.0.0.1", "/apis2", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Host = tt.host
			proxy.ServeHTTP(w, r)
			if w.Code != tt.code {
				t.Fatalf("got %d, want %d: %s", w.Code, tt.code, w.Body)
			}
			if want := tt.method + " " + tt.path; tt.code == 200 && tt.method != "HEAD" && w.Body.String() != want {
				t.Errorf("the agent got %q, want %q", w.Body, want)
			}
			var status metav1.Status
			if tt.code != 200 && (json.Unmarshal(w.Body.Bytes(), &status) != nil || int(status.Code) != tt.code || status.Message == "") {
				t.Errorf("got %q, want a metav1.Status", w.Body)
			}
		})
	}
}

func TestProxy_AgentGone(t *testing.T) {
	client := socket.New(filepath.Join(t.TempDir(), "none"))
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/api", nil)
	r.Host = "127.0.0.1"
	newProxyHandler(client, slog.New(slog.DiscardHandler)).ServeHTTP(w, r)
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "is the agent running?") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestProxy_Command prints where it listens, serves there, and ends with ctx.
func TestProxy_Command(t *testing.T) {
	path := serveSocket(t, echo)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, []string{"proxy", "--socket", path}, streams{out: w, err: io.Discard})
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	if !strings.HasPrefix(address, "http://127.0.0.1:") {
		t.Fatalf("got address %q, want a loopback one", address)
	}
	resp, err := http.Get(address + "/version")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(body) != "GET /version" {
		t.Errorf("got %q, %v", body, err)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("got exit code %d, want %d", got, exitDone)
	}
}
