// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// world is a provider on a real store, beside what the framework knows of the server.
type world struct {
	*provider
	live cache.Indexer
	path string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		live: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		path: filepath.Join(t.TempDir(), journal.FileName),
	}
	w.open(t)
	return w
}

// open starts the provider on the store, as after a start of the process.
func (w *world) open(t *testing.T) {
	t.Helper()
	store, err := manager.Open(manager.Options{Path: w.path, Node: "node"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w.provider = newProvider(store, corev1listers.NewPodLister(w.live), options{out: io.Discard, log: slog.New(slog.DiscardHandler)})
}

func (w *world) reopen(t *testing.T) {
	t.Helper()
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(t)
}

// create makes a pod on the server and has the provider run it.
func (w *world) create(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	w.live.Add(pod)
	if err := w.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (w *world) phase(t *testing.T, pod *v1.Pod) v1.PodPhase {
	t.Helper()
	status, err := w.GetPodStatus(t.Context(), pod.Namespace, pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	return status.Phase
}

// TestProvider_Restart knows its pods again, so that the framework creates none anew.
func TestProvider_Restart(t *testing.T) {
	w := newWorld(t)
	done := w.create(t, newPod("done", v1.RestartPolicyNever, runsForKey, "1h", exitCodeKey, "3"))
	w.create(t, newPod("stays", v1.RestartPolicyAlways))
	w.steps(t.Context(), time.Now())
	w.steps(t.Context(), time.Now().Add(2*time.Hour))

	w.reopen(t)
	pods, err := w.GetPods(t.Context())
	if err != nil || len(pods) != 2 {
		t.Fatalf("got %d pods, %v, want 2", len(pods), err)
	}
	if got := w.phase(t, done); got != v1.PodFailed {
		t.Errorf("done: got phase %s, want Failed", got)
	}
	if got := pods[1]; got.Name != "stays" || got.Status.Phase != v1.PodRunning || len(got.Spec.Containers) != 1 {
		t.Errorf("got %s in phase %s with %d containers, want the pod as it was", got.Name, got.Status.Phase, len(got.Spec.Containers))
	}
	before, _ := w.store.Entry(done.UID)
	w.steps(t.Context(), time.Now().Add(3*time.Hour))
	if after, _ := w.store.Entry(done.UID); after.Version != before.Version {
		t.Errorf("done: version %d became %d, want nothing to happen after the end", before.Version, after.Version)
	}
}

func TestProvider_Delete(t *testing.T) {
	w := newWorld(t)
	pod := w.create(t, newPod("a", v1.RestartPolicyAlways))
	w.steps(t.Context(), time.Now())
	deleted := pod.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.Now())
	w.live.Update(deleted)
	for range 2 { // the framework may call more than once
		if err := w.DeletePod(t.Context(), deleted); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := w.store.Entry(pod.UID)
	if end := e.Status.ContainerStatuses[0].State.Terminated; e.Status.Phase != v1.PodFailed || end == nil || end.ExitCode != exitDeleted || !e.Finished {
		t.Errorf("got phase %s, end %+v, finished %t, want Failed, exit code %d, true", e.Status.Phase, end, e.Finished, exitDeleted)
	}

	// Now it is gone from the server, and nobody is left to be told.
	w.live.Delete(deleted)
	if err := w.DeletePod(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.store.Entry(pod.UID); ok {
		t.Error("the store keeps a pod that is gone")
	}
	if err := w.DeletePod(t.Context(), deleted); !errdefs.IsNotFound(err) {
		t.Errorf("once more: got %v, want not found", err)
	}
}

// TestProvider_Stopping stores what it is given although the process is about to end.
func TestProvider_Stopping(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pod := newPod("a", v1.RestartPolicyAlways)
	if err := w.CreatePod(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.store.GetPodStatus(pod.UID); !ok {
		t.Error("the pod was taken over, and nothing is stored")
	}
}

// TestProvider_Update has a change be heeded at once.
func TestProvider_Update(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pod := w.create(t, newPod("a", v1.RestartPolicyNever, runsForKey, "50m"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		time.Sleep(time.Second)
		pod = pod.DeepCopy()
		pod.Annotations[runsForKey] = "1m"
		if err := w.UpdatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := w.phase(t, pod); got != v1.PodSucceeded {
			t.Errorf("got phase %s, want Succeeded", got)
		}
		gone := newPod("gone", v1.RestartPolicyNever)
		if err := w.UpdatePod(t.Context(), gone); err != nil {
			t.Errorf("a pod that was dropped meanwhile: got %v, want nil, or the framework says that it failed", err)
		}
	})
}

// TestProvider_Recreated asks for a pod that has the name of another one.
func TestProvider_Recreated(t *testing.T) {
	w := newWorld(t)
	old := w.create(t, newPod("a", v1.RestartPolicyAlways))
	again := newPod("a", v1.RestartPolicyAlways)
	again.UID = "uid-again"
	w.live.Update(again)
	if pod, err := w.GetPod(t.Context(), "default", "a"); !errdefs.IsNotFound(err) {
		t.Fatalf("got %v, %v, want not found, so that the framework creates it", pod, err)
	}
	w.create(t, again)
	if pod, err := w.GetPod(t.Context(), "default", "a"); err != nil || pod.UID != again.UID {
		t.Errorf("got %v, %v, want the new pod", pod, err)
	}

	// The store drops the old one when its syncer sees the other UID; no step brings it back.
	if err := w.store.Remove(t.Context(), old.UID, journal.ReasonRecreated); err != nil {
		t.Fatal(err)
	}
	w.steps(t.Context(), time.Now())
	if _, ok := w.store.Entry(old.UID); ok {
		t.Error("a dropped pod is back")
	}
	if pods, _ := w.GetPods(t.Context()); len(pods) != 1 {
		t.Errorf("got %d pods, want 1", len(pods))
	}
}

// TestProvider_StoreFails takes no step that is not stored, and takes it later.
func TestProvider_StoreFails(t *testing.T) {
	w := newWorld(t)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	pod := newPod("a", v1.RestartPolicyAlways)
	w.create(t, pod)
	if got := w.phase(t, pod); got != v1.PodPending {
		t.Errorf("got phase %s, want Pending as on the server", got)
	}
	lost := w.workloads
	w.open(t)
	w.workloads = lost
	w.steps(t.Context(), time.Now().Add(2*retryStore))
	w.steps(t.Context(), time.Now().Add(2*retryStore))
	if got := w.phase(t, pod); got != v1.PodRunning {
		t.Errorf("after the store works again: got phase %s, want Running", got)
	}
}

// serverPods is the server, which must not be written to.
type serverPods struct {
	corev1client.PodInterface
	deleted []string
}

func (s *serverPods) Pods(string) corev1client.PodInterface { return s }

func (s *serverPods) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	s.deleted = append(s.deleted, name)
	return nil
}

// TestPodsOfStore: what the framework wants to write goes to the store.
func TestPodsOfStore(t *testing.T) {
	w := newWorld(t)
	server := new(serverPods)
	pods := podsOfStore{PodsGetter: server, provider: w.provider}.Pods("default")
	say := func(pod *v1.Pod, phase v1.PodPhase) {
		t.Helper()
		pod = pod.DeepCopy()
		pod.Status.Phase, pod.Status.Reason = phase, "ProviderFailed"
		if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	failed := newPod("failed", v1.RestartPolicyNever)
	say(failed, v1.PodFailed)
	if stored, ok := w.store.GetPodStatus(failed.UID); !ok || stored.Reason != "ProviderFailed" {
		t.Errorf("got status %+v, want the framework's", stored)
	}
	later := newPod("later", v1.RestartPolicyAlways)
	say(later, v1.PodPending)
	w.create(t, later) // the framework tries again
	w.steps(t.Context(), time.Now())
	if got := w.phase(t, later); got != v1.PodRunning {
		t.Errorf("created after a failure: got phase %s, want Running", got)
	}

	running := w.create(t, newPod("running", v1.RestartPolicyAlways))
	w.steps(t.Context(), time.Now())
	say(running, v1.PodPending) // on top of what the server had
	if got := w.phase(t, running); got != v1.PodRunning {
		t.Errorf("got phase %s, want Running: the provider knows better", got)
	}
	now := *metav1.NewDeleteOptions(0)
	now.Preconditions = metav1.NewUIDPreconditions(string(running.UID))
	if err := pods.Delete(t.Context(), running.Name, now); err != nil {
		t.Fatal(err)
	}
	if e, _ := w.store.Entry(running.UID); !e.Finished || e.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("got status %+v, want the pod's end", e.Status)
	}
	if len(server.deleted) > 0 {
		t.Errorf("%v was deleted before its end was sent", server.deleted)
	}

	now.Preconditions = metav1.NewUIDPreconditions("uid-stranger")
	if err := pods.Delete(t.Context(), "stranger", now); err != nil || len(server.deleted) != 1 {
		t.Errorf("a pod that was never here: got %v, deleted %v, want it deleted", err, server.deleted)
	}
}
