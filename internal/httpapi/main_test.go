// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a manager with its interface on a unix socket.
type store struct {
	t       *testing.T
	manager *manager.Manager
	client  *http.Client
	socket  string
	close   func()
}

func newStore(t *testing.T, change ...func(*manager.Options, *Options)) *store {
	t.Helper()
	dir := t.TempDir()
	mo := manager.Options{Path: filepath.Join(dir, journal.FileName), Node: "node-1"}
	o := Options{Node: "node-1", Mode: "manage", Software: "test"}
	for _, f := range change {
		f(&mo, &o)
	}
	m, err := manager.Open(mo)
	if err != nil {
		t.Fatal(err)
	}
	o.Manager = m
	stopping := make(chan struct{})
	o.Stopping = stopping
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: New(o)}}
	server.Start()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}
	s := &store{t: t, manager: m, client: &http.Client{Transport: transport}, socket: l.Addr().String()}
	s.close = func() {
		close(stopping)
		transport.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	t.Cleanup(func() { s.close() })
	return s
}

// answer is what came back.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// do sends a request. Headers are pairs of name and value.
func (s *store) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://statusstore"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, data}
}

// into wants a code and decodes the answer.
func (r reply) into(t *testing.T, code int, v any) {
	t.Helper()
	if r.code != code {
		t.Fatalf("got %d, want %d: %.400s", r.code, code, r.body)
	}
	if v == nil {
		return
	}
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v: %.400s", err, r.body)
	}
}

// mustSet stores a pod over HTTP.
func (s *store) mustSet(pod *v1.Pod) reply {
	s.t.Helper()
	r := s.do(http.MethodPut, PodStatusPath(pod.Namespace, pod.Name), jsonOf(s.t, pod))
	r.into(s.t, http.StatusOK, nil)
	return r
}

func (s *store) head() journal.Sequence {
	head, _ := s.manager.Journal().Head()
	return head
}

func (s *store) wantHead(want journal.Sequence) {
	s.t.Helper()
	if got := s.head(); got != want {
		s.t.Errorf("head: got %d, want %d", got, want)
	}
}

// newPod is default/web-0 with the containers app and side, running and ready.
func newPod(name string, uid types.UID, edits ...func(*v1.Pod)) *v1.Pod {
	container := func(name, id string) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name: name, ContainerID: id, Ready: true, Started: new(true), Image: "img",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Unix(1_700_000_000, 0)}},
		}
	}
	pod := &v1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: uid, Labels: map[string]string{"app": name},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-5 * time.Minute).Truncate(time.Second)),
		},
		Spec: v1.PodSpec{
			NodeName: "node-1", RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "app", Image: "img"}, {Name: "side", Image: "img"}},
		},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []v1.ContainerStatus{container("app", "containerd://c1"), container("side", "containerd://c2")},
			Conditions: []v1.PodCondition{
				{Type: v1.PodReady, Status: v1.ConditionTrue}, {Type: v1.ContainersReady, Status: v1.ConditionTrue},
			},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func message(text string) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Message = text } }

func phase(ph v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = ph } }

func terminated(code int32) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func protoOf(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	var b bytes.Buffer
	if err := protoSerializer.Encode(pod, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func number(t *testing.T, h http.Header, name string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(h.Get(name), 10, 64)
	if err != nil {
		t.Fatalf("header %s: %v", name, err)
	}
	return n
}

// slack is what a limit is stretched by on a machine that does much else. Limits
// tell what happens soon from what never does; they measure nothing.
const slack = 5

// eventually polls until a condition holds.
func eventually(t *testing.T, limit time.Duration, condition func() bool) {
	t.Helper()
	limit *= slack
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v", limit)
		}
	}
}
