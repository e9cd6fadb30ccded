// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// C07: sends readiness before the first status, and after it.
func TestC07(t *testing.T) {
	s := newStore(t)
	set := func(containerID string) reply {
		return s.do(http.MethodPost, ReadinessPath("uid-a"), `{"containerID":"`+containerID+`","ready":true}`)
	}
	unknown := func(containerID, kind, word string) {
		t.Helper()
		head := s.head()
		var answer metav1.Status
		set(containerID).into(t, http.StatusNotFound, &answer)
		if answer.Reason != metav1.StatusReasonNotFound || answer.Details == nil || answer.Details.Kind != kind || !strings.Contains(answer.Message, word) {
			t.Errorf("%s: got %+v, want NotFound of %s", containerID, answer, kind)
		}
		s.wantHead(head)
	}
	unknown("containerd://c1", "pods", "uid-a")
	s.wantHead(1)
	if n := len(s.manager.Entries()); n != 0 {
		t.Errorf("%d pods are stored, want none", n)
	}
	// The caller tries again after the first status, which says not ready.
	s.mustSet(newPod("web-0", "uid-a", func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse}, {Type: v1.ContainersReady, Status: v1.ConditionFalse}}
	}))
	unknown("containerd://other", "containers", "containerd://other")
	s.wantHead(2)
	r := set("containerd://c1")
	var got CallResult
	r.into(t, http.StatusOK, &got)
	if got.Outcome != OutcomeApplied || got.Version != 2 || number(t, r.header, HeaderVersion) != 2 {
		t.Errorf("got %+v", got)
	}
	var pod v1.Pod
	r = s.do(http.MethodGet, PodPath("default", "web-0"), "")
	r.into(t, http.StatusOK, &pod)
	if !pod.Status.ContainerStatuses[0].Ready || number(t, r.header, HeaderVersion) != 2 {
		t.Errorf("got %+v, version %s; want app ready, version 2", pod.Status.ContainerStatuses[0], r.header.Get(HeaderVersion))
	}
	for _, c := range pod.Status.Conditions {
		if (c.Type == v1.PodReady || c.Type == v1.ContainersReady) && c.Status != v1.ConditionTrue {
			t.Errorf("condition %s is %s, want True", c.Type, c.Status)
		}
	}
	if n := len(pod.Status.Conditions); n < 2 {
		t.Errorf("got %d conditions", n)
	}
	unknown("containerd://other", "containers", "containerd://other")
	set("containerd://c1").into(t, http.StatusOK, &got)
	if got.Outcome != OutcomeUnchanged || got.Version != 2 {
		t.Errorf("again: got %+v", got)
	}
	s.do(http.MethodPost, StartupPath("uid-a"), `{"containerID":"containerd://c1","started":false}`).into(t, http.StatusOK, &got)
	if got.Outcome != OutcomeApplied || got.Version != 3 {
		t.Errorf("startup: got %+v", got)
	}
}

// TestMirror lets either UID of a static pod and its mirror name the pod.
func TestMirror(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("etcd", "uid-source", func(p *v1.Pod) {
		p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	}))
	s.mustSet(newPod("etcd", "uid-mirror", func(p *v1.Pod) {
		p.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "x"}
	}))
	var got CallResult
	s.do(http.MethodPost, ReadinessPath("uid-mirror"), `{"containerID":"containerd://c1","ready":false}`).into(t, http.StatusOK, &got)
	if got.UID != "uid-source" {
		t.Errorf("got UID %s, want that of the static pod", got.UID)
	}
	var record PodRecord
	s.do(http.MethodGet, PathPods+"/uid-mirror", "").into(t, http.StatusOK, &record)
	if record.UID != "uid-source" {
		t.Errorf("got %+v", record)
	}
	var history History
	s.do(http.MethodGet, HistoryPath("uid-mirror"), "").into(t, http.StatusOK, &history)
	if history.UID != "uid-source" || len(history.Events) != 2 {
		t.Errorf("got %+v", history)
	}
	s.do(http.MethodPatch, PodStatusPath("default", "etcd"), `{"metadata":{"uid":"uid-mirror"},"status":{"message":"m"}}`, "Content-Type", "application/merge-patch+json").into(t, http.StatusOK, nil)
	var removed RetainResult
	s.do(http.MethodPost, PathRetain, `{"uids":["uid-mirror"]}`).into(t, http.StatusOK, &removed)
	if len(removed.Removed) != 0 {
		t.Errorf("removed %v although its mirror is to be kept", removed.Removed)
	}
}

func TestTerminateFinishRetain(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	s.mustSet(newPod("web-1", "uid-b"))
	s.mustSet(newPod("web-2", "uid-c"))
	var got CallResult
	s.do(http.MethodPost, TerminatePath("uid-a"), "").into(t, http.StatusOK, &got)
	if got.Version != 2 || got.Outcome != OutcomeApplied {
		t.Errorf("terminate: got %+v", got)
	}
	if status, _ := s.manager.GetPodStatus("uid-a"); status.Phase != v1.PodFailed || status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("terminate: got %+v", status)
	}
	s.do(http.MethodPost, FinishedPath("uid-b"), "{}").into(t, http.StatusOK, &got)
	if e, _ := s.manager.Entry("uid-b"); !e.Finished || got.Version != 2 || got.Name != "web-1" {
		t.Errorf("finished: got %+v", got)
	}
	s.do(http.MethodPost, FinishedPath("uid-b"), "").into(t, http.StatusOK, &got)
	if got.Outcome != OutcomeUnchanged || got.Version != 2 {
		t.Errorf("finished again: got %+v", got)
	}
	var result RetainResult
	s.do(http.MethodPost, PathRetain, `{"uids":["uid-a","uid-unknown"]}`).into(t, http.StatusOK, &result)
	if len(result.Removed) != 2 || len(s.manager.Entries()) != 1 {
		t.Errorf("retain: got %+v", result)
	}
	s.do(http.MethodPost, PathRetain, `{"uids":[]}`).into(t, http.StatusOK, &result)
	if len(result.Removed) != 1 || len(s.manager.Entries()) != 0 {
		t.Errorf("retain none: got %+v", result)
	}
	s.do(http.MethodPost, PathRetain, `{"uids":[]}`).into(t, http.StatusOK, &result)
	if result.Removed == nil {
		t.Error("retain none again: removed is null")
	}
}

func TestHistory(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{"one", "two", "three"} {
		s.mustSet(newPod("web-0", "uid-a", message(text)))
		s.mustSet(newPod("web-1", "uid-b", message(text)))
	}
	var h History
	s.do(http.MethodGet, HistoryPath("uid-a"), "").into(t, http.StatusOK, &h)
	if len(h.Events) != 3 || h.Truncated || h.Events[2].Status.Message != "three" || h.Events[0].Kind != "set" || h.Name != "web-0" {
		t.Errorf("got %+v", h)
	}
	s.do(http.MethodGet, HistoryPath("uid-a")+"?limit=1", "").into(t, http.StatusOK, &h)
	if len(h.Events) != 1 || !h.Truncated || h.Events[0].Version != 3 {
		t.Errorf("limited: got %+v", h)
	}
	s.do(http.MethodPost, PathRetain, `{"uids":[]}`).into(t, http.StatusOK, nil)
	s.do(http.MethodGet, HistoryPath("uid-a"), "").into(t, http.StatusOK, &h)
	if n := len(h.Events); n != 4 || h.Events[3].Kind != "removed" {
		t.Errorf("after the removal: got %d events", n)
	}
}

func readEvents(t *testing.T, body string) []wire.Event {
	t.Helper()
	var events []wire.Event
	for line := range strings.Lines(body) {
		var e wire.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

func TestEvents(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", message("one")))
	s.mustSet(newPod("web-0", "uid-a", message("two")))
	r := s.do(http.MethodGet, PathEvents, "")
	events := readEvents(t, string(r.body))
	if len(events) != 3 || events[0].Kind != "opened" || events[2].Status.Message != "two" || events[2].Reason != "set" {
		t.Fatalf("got %s", r.body)
	}
	if got := readEvents(t, string(s.do(http.MethodGet, PathEvents+"?from=2&to=2", "").body)); len(got) != 1 || got[0].Sequence != 2 {
		t.Errorf("a range: got %+v", got)
	}
	if got := s.do(http.MethodGet, PathEvents+"?from=4", ""); got.code != http.StatusOK || len(got.body) != 0 {
		t.Errorf("from just behind the end: got %d %s", got.code, got.body)
	}

	// Follow.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://statusstore"+PathEvents+"?from=3&follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() wire.Event {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		return readEvents(t, lines.Text())[0]
	}
	if e := next(); e.Sequence != 3 {
		t.Errorf("got %+v", e)
	}
	s.mustSet(newPod("web-0", "uid-a", message("three")))
	if e := next(); e.Sequence != 4 || e.Status.Message != "three" || e.Version != 3 {
		t.Errorf("got %+v", e)
	}
}

func TestSnapshot(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	r := s.do(http.MethodGet, PathSnapshot, "")
	r.into(t, http.StatusOK, nil)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, r.body, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if reader.Head() != 2 {
		t.Errorf("got head %d, want 2", reader.Head())
	}
}

func TestStatusAndRecords(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	s.mustSet(newPod("web-0", "uid-a", message("two")))
	var got Status
	s.do(http.MethodGet, PathStatus, "").into(t, http.StatusOK, &got)
	if got.Node != "node-1" || got.Epoch != 1 || got.HeadSequence != 3 || got.Pods != 1 || got.Pending != 1 || got.AckedVersionsBehind != 2 || got.Degraded || got.JournalBytes == 0 || got.Events != 3 {
		t.Errorf("got %+v", got)
	}
	var list PodRecordList
	s.do(http.MethodGet, PathPods, "").into(t, http.StatusOK, &list)
	if len(list.Pods) != 1 || list.Pods[0].State != StatePending || list.Pods[0].Version != 2 || list.Pods[0].Sequence != 3 || list.Pods[0].PendingSince == nil {
		t.Errorf("got %+v", list)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		r := s.do(http.MethodGet, path, "")
		if r.code != http.StatusOK || string(r.body) != "ok" {
			t.Errorf("%s: got %d %s", path, r.code, r.body)
		}
	}
	if r := s.do(http.MethodGet, "/readyz?verbose", ""); !strings.Contains(string(r.body), "[+]disk ok") {
		t.Errorf("got %s", r.body)
	}
	r := s.do(http.MethodGet, "/metrics", "")
	r.into(t, http.StatusOK, nil)
	for _, want := range []string{
		"statusstore_pods 1", "statusstore_pods_pending 1", "statusstore_journal_events_total 2", "statusstore_journal_degraded 0",
		`statusstore_http_requests_total{code="200",method="PUT",path="/api/v1/namespaces/{ns}/pods/{name}/status"} 1`,
	} {
		if !strings.Contains(string(r.body), want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if err := s.manager.Close(); err != nil {
		t.Fatal(err)
	}
	s.do(http.MethodGet, "/readyz", "").into(t, http.StatusServiceUnavailable, nil)
	if r := s.do(http.MethodGet, "/readyz?verbose", ""); r.code != http.StatusServiceUnavailable || !strings.Contains(string(r.body), "[-]disk failed") {
		t.Errorf("got %d %s", r.code, r.body)
	}
	s.do(http.MethodPut, PodStatusPath("default", "web-0"), jsonOf(t, newPod("web-0", "uid-a", message("x")))).into(t, http.StatusServiceUnavailable, nil)
	s.do(http.MethodGet, PodPath("default", "web-0"), "").into(t, http.StatusOK, nil) // reads go on
}
