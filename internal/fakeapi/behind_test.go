// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func newRequest(t *testing.T, method, path string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), method, path, nil)
}

func TestBehind_Hide(t *testing.T) {
	server := listen(t, Options{})
	pod := put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)
	w, err := pods.Watch(within(t), metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	if err := server.Hide(ns, "a"); err != nil {
		t.Fatal(err)
	}
	if err := patchMessage(t.Context(), pods, "a", "m"); !apierrors.IsNotFound(err) {
		t.Errorf("patch of the hidden pod: %v, want not found", err)
	}
	if list, err := pods.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("list has %d pods (error %v), want none", len(list.Items), err)
	}
	if _, err := pods.Create(t.Context(), newPod("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create: %v, want already exists", err)
	}
	if err := server.Unhide(ns, "a"); err != nil {
		t.Fatal(err)
	}
	got, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.UID != pod.UID {
		t.Errorf("UID %s (error %v), want %s", got.UID, err, pod.UID)
	}
	for _, want := range []string{"DELETED", "ADDED"} {
		if event := <-w.ResultChan(); string(event.Type) != want {
			t.Errorf("event is %s, want %s", event.Type, want)
		}
	}
	if err := server.Unhide(ns, "a"); !errors.Is(err, ErrNoPod) {
		t.Errorf("second unhide: %v, want ErrNoPod", err)
	}
}

func TestBehind_GoneAndBackWithSameUID(t *testing.T) {
	server := listen(t, Options{})
	pod := newPod("a")
	pod.UID = "uid-a"
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: time.Now()}}
	first := put(t, server, pod)
	if first.UID != "uid-a" || first.Status.Phase != corev1.PodRunning || first.Status.StartTime.Nanosecond() != 0 {
		t.Errorf("stored: UID %s, phase %s, start %v: want as given, in whole seconds", first.UID, first.Status.Phase, first.Status.StartTime)
	}
	if err := server.Remove(ns, "a"); err != nil {
		t.Fatal(err)
	}
	if err := server.Remove(ns, "a"); !errors.Is(err, ErrNoPod) {
		t.Errorf("second remove: %v, want ErrNoPod", err)
	}
	pod.Status = corev1.PodStatus{}
	if again := put(t, server, pod); again.UID != "uid-a" || again.Status.Phase != corev1.PodPending {
		t.Errorf("UID %s, phase %s: want uid-a, Pending", again.UID, again.Status.Phase)
	}
}

func TestBehind_PutOtherUIDReplaces(t *testing.T) {
	server := listen(t, Options{})
	old := put(t, server, newPod("a"))
	fresh := newPod("a")
	fresh.UID = "uid-b"
	put(t, server, fresh)
	pods := client(t, server).CoreV1().Pods(ns)
	w, err := pods.Watch(within(t), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []struct {
		kind string
		uid  types.UID
	}{{"DELETED", old.UID}, {"ADDED", "uid-b"}} {
		event := <-w.ResultChan()
		if got := event.Object.(*corev1.Pod).UID; string(event.Type) != want.kind || got != want.uid {
			t.Errorf("event is %s of %s, want %s of %s", event.Type, got, want.kind, want.uid)
		}
	}
}

func TestBehind_CopiesInAndOut(t *testing.T) {
	server := listen(t, Options{})
	pod := newPod("a")
	pod.Labels = map[string]string{"k": "v"}
	put(t, server, pod).Labels["k"] = "out"
	pod.Labels["k"] = "in"
	read, _ := server.Pod(ns, "a")
	read.Labels["k"] = "read"
	server.Pods()[0].Labels["k"] = "list"
	if err := server.Mutate(ns, "a", func(pod *corev1.Pod) { read = pod }); err != nil {
		t.Fatal(err)
	}
	read.Labels["k"] = "kept by the edit"
	if got, _ := server.Pod(ns, "a"); got.Labels["k"] != "v" {
		t.Errorf("label is %q, want v", got.Labels["k"])
	}
}

func TestOptions_VolumeHealth(t *testing.T) {
	server := listen(t, Options{VolumeHealth: true})
	pod := newPod("a")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v"}}
	put(t, server, pod)
	pods := client(t, server).CoreV1().Pods(ns)
	patch := func(body string) (*corev1.Pod, error) {
		return pods.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	}
	if got, err := patch(`{"status":{"volumeHealth":[{"name":"v"}]}}`); err != nil || len(got.Status.VolumeHealth) != 1 {
		t.Errorf("volumeHealth is %v (error %v), want one entry", got.Status.VolumeHealth, err)
	}
	_, err := patch(`{"status":{"volumeHealth":[{"name":"none"}]}}`)
	wantCode(t, err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
}

func TestBehind_Restore(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	backup := server.Backup()
	later := put(t, server, newPod("b"))
	if err := server.SetLabel(ns, "a", "k", "v"); err != nil {
		t.Fatal(err)
	}
	pods := client(t, server).CoreV1().Pods(ns)
	cut, err := pods.Watch(within(t), metav1.ListOptions{ResourceVersion: later.ResourceVersion, LabelSelector: "none"})
	if err != nil {
		t.Fatal(err)
	}
	server.Restore(backup)
	for range cut.ResultChan() { // until it is cut
	}
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Labels["k"] != "" {
		t.Errorf("list is %v (error %v), want a without a label", list.Items, err)
	}
	// As in a real server a watch that knows a later version isn't told.
	w, err := pods.Watch(within(t), metav1.ListOptions{ResourceVersion: later.ResourceVersion, TimeoutSeconds: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	put(t, server, newPod("c"))
	for event := range w.ResultChan() {
		t.Errorf("event %s for a version of the past", event.Type)
	}
}

func TestStatusHistory(t *testing.T) {
	server := listen(t, Options{StatusLog: 3})
	pod := put(t, server, newPod("a"))
	config := server.RESTConfig()
	config.UserAgent = "agent/1"
	pods := clientFor(t, config).CoreV1().Pods(ns)
	for _, text := range []string{"1", "2", "2", "3", "4"} {
		if err := patchMessage(t.Context(), pods, "a", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.SetStatus(ns, "a", corev1.PodStatus{Message: "behind"}); err != nil {
		t.Fatal(err)
	}
	if err := server.Remove(ns, "a"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range server.StatusHistory(pod.UID) {
		got = append(got, change.Status.Message)
		if change.UserAgent != "agent/1" || change.ResourceVersion == "" || change.At.IsZero() {
			t.Errorf("change is %+v, want agent, version and time", change)
		}
	}
	// Repetitions aren't changes, and the oldest is over the limit.
	if diff := cmp.Diff([]string{"2", "3", "4"}, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestRequests(t *testing.T) {
	server := listen(t, Options{RequestLog: 4})
	put(t, server, newPod("a"))
	config := server.RESTConfig()
	config.UserAgent = "agent/1"
	pods := clientFor(t, config).CoreV1().Pods(ns)
	if _, err := clientFor(t, config).Discovery().ServerVersion(); err != nil {
		t.Fatal(err)
	}
	if err := patchMessage(t.Context(), pods, "a", "m"); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "none", *metav1.NewPreconditionDeleteOptions("uid-x")); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	got := server.Requests(Match{Verbs: []Verb{Patch, Delete}, UserAgent: "agent/1"})
	if len(got) != 2 {
		t.Fatalf("%d requests, want 2", len(got))
	}
	want := Request{
		Verb: Patch, Method: "PATCH", Path: "/api/v1/namespaces/default/pods/a/status", Namespace: ns, Name: "a", Subresource: "status",
		ContentType: "application/strategic-merge-patch+json", UserAgent: "agent/1", Body: []byte(`{"status":{"message":"m"}}`), At: got[0].At, Code: 200,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
	if got[1].Code != 404 || !strings.Contains(string(got[1].Body), "uid-x") || got[1].At.Before(got[0].At) {
		t.Errorf("delete is %+v, want code 404, the UID, in order", got[1])
	}
	if n := server.Count(Discovery); n != 1 || server.Count() != 2 || server.Count(Patch) != 1 {
		t.Errorf("counts are %d, %d, %d: want 1, 2, 1", n, server.Count(), server.Count(Patch))
	}

	for range 20 {
		_, _ = pods.Get(t.Context(), "a", metav1.GetOptions{})
	}
	if kept := len(server.Requests(Match{})); kept >= 8 || kept+server.Dropped() != 23 || server.Count(Get) != 20 {
		t.Errorf("%d kept, %d dropped, %d counted", kept, server.Dropped(), server.Count(Get))
	}
	server.ResetRequests()
	if len(server.Requests(Match{})) != 0 || server.Count() != 0 || server.Dropped() != 0 {
		t.Error("something is left after the reset")
	}
}
