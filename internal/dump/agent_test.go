// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve answers on a unix socket as an agent does.
func serve(t *testing.T, h http.Handler) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "jd") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { server.Serve(l); close(done) }()
	t.Cleanup(func() { server.Close(); <-done; os.RemoveAll(dir) })
	return socket
}

func TestSocketSnapshot(t *testing.T) {
	path := tale(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	busy := true
	mux.HandleFunc("GET /statusstore/v1/snapshot", func(w http.ResponseWriter, _ *http.Request) {
		if busy { // another one is being read
			busy = false
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Write(content)
	})
	mux.HandleFunc("GET /statusstore/v1/pods", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pods":[{"uid":"uid-web-0","lastError":"422 no such field"}]}`)
	})
	socket := serve(t, mux)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, verb := range []string{"events", "state", "unsynced", "verify"} {
		want := run(verb, "-o", "ndjson", path)
		got := run(verb, "-o", "ndjson", "--socket", socket)
		wantRun(t, got, exitOK)
		if verb == "unsynced" {
			if !strings.Contains(got.out, "2 behind") || !strings.Contains(got.out, "; 422 no such field") {
				t.Errorf("unsynced: got %s", got.out)
			}
			continue
		}
		if verb != "verify" && got.out != want.out {
			t.Errorf("%s: got %s, want %s", verb, got.out, want.out)
		}
	}
	if got := run(socket); got.code != exitOK || len(got.lines()) != 10 {
		t.Errorf("the socket as FILE: exit code %d, %s%s", got.code, got.out, got.err)
	}
	out := filepath.Join(t.TempDir(), "copy.db")
	wantRun(t, run("compact", "--socket", socket, out), exitOK)
	wantRun(t, run("verify", out), exitOK)
	if left, _ := os.ReadDir(temp); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSocketFailures(t *testing.T) {
	path := tale(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			w.Write(content[:len(content)/2])
		}, "unexpected EOF"},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			json.NewEncoder(w).Encode(metav1.Status{Message: "only root may"})
		}, "only root may"},
		{"no agent", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, "not a journal"},
		{"damaged copy", func(w http.ResponseWriter, _ *http.Request) { w.Write(content[:3*4096]) }, "truncated"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			socket := serve(t, tt.answer)
			got := run("--socket", socket)
			wantRun(t, got, exitFailed, tt.want, socket)
			if strings.Contains(got.err, "/proc/") || got.out != "" {
				t.Errorf("got %q, stdout %q", got.err, got.out)
			}
		})
	}
	wantRun(t, run("--socket", filepath.Join(t.TempDir(), "none")), exitFailed, "no answer from an agent")
}

// TestFollow: history first, then each event as it comes, until interrupted.
func TestFollow(t *testing.T) {
	lines := run("-o", "ndjson", tale(t)).lines()
	seen := make(chan string)
	query := make(chan string, 1)
	socket := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query <- r.URL.Path + "?" + r.URL.RawQuery
		for _, line := range lines {
			fmt.Fprintln(w, line)
			w.(http.Flusher).Flush()
			if strings.Contains(line, "web-0") {
				select {
				case <-seen: // the client has printed it
				case <-time.After(time.Minute):
					t.Error("an event was not printed at once")
				}
			}
		}
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	var stderr bytes.Buffer
	out := &lineWriter{seen: seen, after: 6, done: cancel}
	root := NewCommand(nil, out, &stderr)
	root.SetArgs([]string{"--socket", socket, "--follow", "--pod", "web-0", "--from", "2"})
	if err := root.ExecuteContext(ctx); err != nil {
		t.Errorf("got %v, stderr %s; want a quiet end", err, stderr.String())
	}
	if got, want := <-query, "/statusstore/v1/events?follow=true&from=2"; got != want {
		t.Errorf("request: got %s, want %s", got, want)
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("got %d lines, want 6:\n%s", n, out.String())
	}
}

// lineWriter tells of each line and ends the program after some.
type lineWriter struct {
	bytes.Buffer
	seen  chan string
	after int
	done  func()
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.Buffer.Write(p)
	for range bytes.Count(p, []byte("\n")) {
		w.seen <- string(p)
		if w.after--; w.after == 0 {
			w.done()
		}
	}
	return len(p), nil
}

func TestFollowEnds(t *testing.T) {
	damaged := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"sequence":7,"error":"checksum does not match"}`)
		fmt.Fprintln(w, `{"sequence":8,"kind":"removed"}`)
	}))
	got := run("--socket", damaged, "--follow", "-o", "ndjson")
	wantRun(t, got, exitFailed, "sequence 7: checksum does not match")
	if len(got.events(t)) != 1 {
		t.Errorf("got %q, want event 8 only", got.out)
	}
	socket := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "{\"sequence\":1,\"kind\":\"opened\"}") }))
	wantRun(t, run("--socket", socket, "--follow"), exitFailed, "the agent ended the stream")
	broken := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") }))
	wantRun(t, run("--socket", broken, "--follow"), exitFailed, "invalid character")
}
