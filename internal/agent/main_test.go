// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/wire"
)

func TestMain(m *testing.M) {
	if settings, ok := os.LookupEnv(childEnv); ok {
		os.Exit(runChild(settings))
	}
	// As the command does; once, since goroutines of client-go read it at any time.
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&clientLog, nil)))
	goleak.VerifyTestMain(m)
}

// clientLog is what client-go logs in all tests.
var clientLog logBuffer

// logBuffer keeps what the agent logs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// running is an agent in this process.
type running struct {
	t      *testing.T
	log    *logBuffer
	client *http.Client
	cancel context.CancelFunc
	done   chan error
	socket string
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

func configFor(dir string) Config {
	return Config{DataDir: dir, Node: "node-1", Software: "statusstore v0.0.1"}
}

// begin starts an agent and waits until it is ready or has failed.
func begin(t *testing.T, c Config) (*running, error) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	r := &running{t: t, log: &logBuffer{}, done: make(chan error, 1)}
	c.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ready := make(chan string, 1)
	c.Ready = func(socket string) { ready <- socket }
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- Run(ctx, c) }()
	select {
	case r.socket = <-ready:
	case err := <-r.done:
		cancel()
		return r, err
	case <-time.After(slack * 10 * time.Second):
		t.Fatalf("neither ready nor failed:\n%s", r.log)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", r.socket)
	}}
	r.client = &http.Client{Transport: transport, Timeout: slack * 10 * time.Second}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the agent:\n%s", r.log)
		}
		transport.CloseIdleConnections()
		if r.done != nil {
			r.stop()
		}
	})
	return r, nil
}

func start(t *testing.T, c Config) *running {
	t.Helper()
	r, err := begin(t, c)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.log)
	}
	return r
}

// stop ends the agent in order and returns how long that took.
func (r *running) stop() time.Duration {
	r.t.Helper()
	begin := time.Now()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Errorf("stop: %v\n%s", err, r.log)
	}
	r.done = nil
	r.client.CloseIdleConnections()
	return time.Since(begin)
}

// call sends a request and wants 200.
func (r *running) call(method, path string, in, out any) {
	r.t.Helper()
	code, body, err := r.try(method, path, in)
	if err != nil || code != http.StatusOK {
		r.t.Fatalf("%s %s: %d %v: %s", method, path, code, err, body)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			r.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

func (r *running) try(method, path string, in any) (int, []byte, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, "http://statusstore"+path, body)
	if err != nil {
		return 0, nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

func (r *running) set(pod *v1.Pod) {
	r.t.Helper()
	r.call(http.MethodPut, httpapi.PodStatusPath(pod.Namespace, pod.Name), pod, nil)
}

func (r *running) get(pod *v1.Pod) *v1.Pod {
	r.t.Helper()
	got := new(v1.Pod)
	r.call(http.MethodGet, httpapi.PodPath(pod.Namespace, pod.Name), nil, got)
	return got
}

func (r *running) status() httpapi.Status {
	r.t.Helper()
	var s httpapi.Status
	r.call(http.MethodGet, httpapi.PathStatus, nil, &s)
	return s
}

func (r *running) events() []wire.Event {
	r.t.Helper()
	code, body, err := r.try(http.MethodGet, httpapi.PathEvents, nil)
	if err != nil || code != http.StatusOK {
		r.t.Fatalf("events: %d %v", code, err)
	}
	var events []wire.Event
	for line := range strings.Lines(string(body)) {
		var e wire.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatal(err)
		}
		if e.Kind != "opened" {
			events = append(events, e)
		}
	}
	return events
}

func (r *running) logged(text string) {
	r.t.Helper()
	if !strings.Contains(r.log.String(), text) {
		r.t.Errorf("the log lacks %q:\n%s", text, r.log)
	}
}

func newPod(i int, edits ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))},
		Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: "app", Image: "img"}}},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func message(text string) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Message = text } }

// newAPI starts a fake API server with pods and returns the way to it.
func newAPI(t *testing.T, pods ...*v1.Pod) (*fakeapi.Server, string) {
	t.Helper()
	api, err := fakeapi.Listen(fakeapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Errorf("close the API server: %v", err)
		}
	})
	for _, pod := range pods {
		if _, err := api.Put(pod); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := api.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	return api, path
}

// slack is what a limit is stretched by on a machine that does much else. Limits
// tell what happens soon from what never does; they measure nothing.
const slack = 5

func eventually(t *testing.T, limit time.Duration, condition func() bool) {
	t.Helper()
	limit *= slack
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v", limit)
		}
	}
}
