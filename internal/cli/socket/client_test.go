// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// newClient returns a client of a handler on a socket.
func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	client := New(listener.Addr().String())
	t.Cleanup(client.Close)
	return client
}

func TestClient_NotRunning(t *testing.T) {
	dir := shortDir(t)
	stale := filepath.Join(dir, "stale")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	tests := []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none"), "there is no such socket; is the agent running?"},
		{"left by a dead agent", stale, "nobody listens; is the agent running?"},
		{"too long", filepath.Join(dir, strings.Repeat("x", 200)), "has at most 107 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.path).Status(t.Context())
			if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestClient_SetStatus(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.Method+" "+r.URL.Path, "PUT /api/v1/namespaces/shop/pods/web/status"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"kind":"Pod"`) {
			t.Errorf("body has no kind: %s", body)
		}
		w.Header().Set(httpapi.HeaderVersion, "3")
		w.Header().Set(httpapi.HeaderAckedVersion, "2")
		w.Header().Set(httpapi.HeaderSequence, "9")
		w.Write(body)
	})
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
	got, err := c.SetStatus(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != 3 || got.AckedVersion != 2 || got.Sequence != 9 || got.Pod.UID != "u" {
		t.Errorf("got %+v", got)
	}
	if pod.Kind != "" {
		t.Error("the caller's pod was changed")
	}
}

// TestG1_NoVersionIsNoSuccess: an answer that doesn't say what was stored counts as
// an error.
func TestG1_NoVersionIsNoSuccess(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	if got, err := c.SetStatus(t.Context(), &v1.Pod{}); err == nil {
		t.Errorf("got %+v, want an error", got)
	}
}

func TestClient_Refusal(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"kind":"Status","code":409,"reason":"Conflict","message":"other UID"}`)
	})
	_, err := c.Finish(t.Context(), "u")
	if !apierrors.IsConflict(err) || err.Error() != "other UID" {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestClient_AgentDies(t *testing.T) {
	c := newClient(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := c.Status(t.Context())
	if err == nil || strings.Contains(err.Error(), "http://") {
		t.Errorf("got %v, want an error without a URL", err)
	}
}

func TestClient_Canceled(t *testing.T) {
	reached := make(chan struct{})
	c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() { <-reached; cancel(why) }()
	if _, err := c.Status(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestClient_Events(t *testing.T) {
	lines := "{\"sequence\":4,\"kind\":\"opened\"}\n{\"sequence\":5,\"kind\":\"set\",\"version\":2}\n"
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("from"); got != "4" {
			t.Errorf("from: got %s, want 4", got)
		}
		io.WriteString(w, lines)
	})
	var got []string
	for e, err := range c.Events(t.Context(), 4) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Sequence, e.Kind, e.Version))
	}
	if want := fmt.Sprint([]string{fmt.Sprint(journal.Sequence(4), "opened", 0), fmt.Sprint(journal.Sequence(5), "set", 2)}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
	lines = "{\"sequence\":4}\n{\"sequ"
	var err error
	for _, err = range c.Events(t.Context(), 4) {
	}
	if err == nil {
		t.Error("a stream that breaks off: got no error")
	}
}

func TestClient_SnapshotTruncated(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		io.WriteString(w, "12345")
		panic(http.ErrAbortHandler)
	})
	if err := c.Snapshot(t.Context(), io.Discard); err == nil {
		t.Error("got no error")
	}
}
