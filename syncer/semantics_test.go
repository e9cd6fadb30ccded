// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

func TestG3_RestartSendsDifferencesOnly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(20, func(i int, pod *v1.Pod) {
			w.put(pod)
			w.memory.set(pod, running(1))
		})
		w.pause(5 * time.Second)
		w.stop()
		many(3, func(i int, pod *v1.Pod) { w.memory.set(pod, running(2)) })
		w.restart()
		w.pause(30 * time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1, fakeapi.Patch: 3})
		many(3, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 2) })
	})
}

// TestSemantics16_CrashBetweenPatchAndAck: the server holds the version, the ack
// was lost.
func TestSemantics16_CrashBetweenPatchAndAck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.deliver(newPod("web-0", "uid-a"), running(1))
		w.stop()
		w.memory.ClearAck("uid-a")
		w.restart()
		w.pause(15 * time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
		w.wantAcked("uid-a", 1)
	})
}

func TestLIST_NothingIsSentBeforeItIsComplete(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List}}, Code: 500})
		w.start()
		w.pause(time.Minute)
		if w.live.HasSynced() {
			t.Error("HasSynced after failed LISTs")
		}
		if n := w.api.Count(fakeapi.Get, fakeapi.Patch, fakeapi.Delete); n != 0 {
			t.Errorf("%d requests before the first LIST", n)
		}
		if drops := w.memory.drops(); len(drops) > 0 {
			t.Errorf("dropped %q", drops)
		}
		fault.Remove()
		w.pause(10 * time.Second)
		w.wantAcked("uid-a", 1)
	})
}

func TestLIST_IsPagedAndNotStreamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		many(501, func(i int, pod *v1.Pod) { w.put(pod) })
		w.start()
		w.pause(time.Second)
		if got := len(w.live.List()); got != 501 {
			t.Errorf("%d live pods, want 501", got)
		}
		lists := w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List}})
		if len(lists) != 2 || !strings.Contains(lists[0].Query, "limit=500") || strings.Contains(lists[0].Query, "resourceVersion=0") {
			t.Errorf("lists: %+v", lists)
		}
		for _, r := range w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Watch}}) {
			if strings.Contains(r.Query, "sendInitialEvents") {
				t.Errorf("streaming list: %s", r.Query)
			}
			if !strings.Contains(r.Query, "spec.nodeName") {
				t.Errorf("no selector: %s", r.Query)
			}
		}
	})
}

// fakeRuntime says which pods may still run.
type fakeRuntime struct{ running chan bool } // holds one value

func newRuntime(may bool) fakeRuntime {
	r := fakeRuntime{make(chan bool, 1)}
	r.running <- may
	return r
}

func (r fakeRuntime) set(may bool) { <-r.running; r.running <- may }

func (r fakeRuntime) PodCouldHaveRunningContainers(*v1.Pod) bool {
	may := <-r.running
	r.running <- may
	return may
}

func TestSemantics79_82_HeldPhaseGoesOutWhenNothingRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		runtime := newRuntime(true)
		w.start(func(o *Options) { o.Runtime = runtime })
		pod := never(newPod("web-0", "uid-a"))
		w.deliver(pod, running(1))
		w.memory.set(pod, ended(v1.PodFailed, 1))
		w.pause(30 * time.Second)
		got := w.onServer("web-0")
		if got.Phase != v1.PodRunning || got.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("phase %s, want Running; containers %+v", got.Phase, got.ContainerStatuses[0].State)
		}
		if n := len(w.api.StatusHistory("uid-a")); n != 2 {
			t.Errorf("%d statuses sent, want 2", n)
		}
		if acked, _ := w.acked("uid-a"); acked != 1 {
			t.Errorf("acked %d while the phase is held, want 1", acked)
		}
		runtime.set(false)
		w.pause(1100 * time.Millisecond)
		if got := w.onServer("web-0").Phase; got != v1.PodFailed {
			t.Errorf("phase %s a second after the last container ended", got)
		}
		w.wantAcked("uid-a", 2)
	})
}

func TestSemantics80a_ServerIsAhead(t *testing.T) { // C28
	inWorld(t, func(t *testing.T, w *world) {
		pod := never(newPod("web-0", "uid-a"))
		server := pod.DeepCopy()
		server.Status = ended(v1.PodFailed, 1)
		w.put(server)
		w.memory.set(pod, running(1))
		w.start()
		w.pause(10 * time.Second)
		for _, change := range w.api.StatusHistory("uid-a") {
			if change.Status.Phase != v1.PodFailed {
				t.Errorf("phase %s sent over Failed", change.Status.Phase)
			}
		}
		if n := strings.Count(w.log.String(), "server is ahead"); n > 1 {
			t.Errorf("%d lines that the server is ahead, want at most 1", n)
		}
		if !strings.Contains(w.log.String(), "server is ahead") {
			t.Error("no line says that the server is ahead")
		}
		w.memory.set(pod, ended(v1.PodFailed, 1))
		w.pause(2 * time.Second)
		w.wantAcked("uid-a", 2)
	})
}

// deletingPod is a pod whose deletion has begun.
func deletingPod(name string, uid types.UID) *v1.Pod {
	pod := never(newPod(name, uid))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, new(int64(30))
	return pod
}

func TestSemantics96_97_DeletesFinishedPods(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := deletingPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		w.memory.set(pod, ended(v1.PodFailed, 1)) // terminal, but resources are in use
		w.pause(15 * time.Second)
		if n := w.api.Count(fakeapi.Delete); n != 0 {
			t.Fatalf("%d DELETEs before the pod was finished", n)
		}
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(time.Second)
		deletes := w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}})
		if len(deletes) != 1 {
			t.Fatalf("%d DELETEs, want 1", len(deletes))
		}
		if _, ok := w.api.Pod("default", "web-0"); ok {
			t.Error("the pod is still there")
		}
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q", got)
		}
		w.pause(time.Minute)
		if n := w.api.Count(fakeapi.Delete, fakeapi.Get); n != 1 {
			t.Errorf("%d requests after the deletion", n-1)
		}
	})
}

func TestSemantics96_WhatIsNotDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(func(o *Options) { o.Pods = statics{"uid-m": "uid-s"} })
		// No deletion timestamp.
		alive := never(newPod("alive", "uid-a"))
		w.put(alive)
		w.memory.terminate(alive, ended(v1.PodSucceeded, 0))
		// A mirror pod.
		mirror := deletingPod("mirror", "uid-m")
		mirror.Annotations = map[string]string{"kubernetes.io/config.mirror": "x"}
		w.put(mirror)
		static := never(newPod("mirror", "uid-s"))
		w.memory.terminate(static, ended(v1.PodFailed, 1))
		// Not terminal on the server.
		w.put(deletingPod("web-0", "uid-b"))
		w.memory.terminate(never(newPod("web-0", "uid-b")), running(1))
		w.pause(time.Minute)
		if n := w.api.Count(fakeapi.Delete); n != 0 {
			t.Errorf("%d DELETEs", n)
		}
	})
}

func TestSemantics97_DeletionResumesAfterRestart(t *testing.T) { // G6
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := deletingPod("web-0", "uid-a")
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}}, Code: 500})
		w.put(pod)
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(5 * time.Second)
		if fault.Hits() < 2 {
			t.Errorf("%d tries of the DELETE, want some", fault.Hits())
		}
		w.wantAcked("uid-a", 1)
		w.stop()
		fault.Remove()
		w.restart()
		w.pause(time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1, fakeapi.Delete: 1})
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q", got)
		}
	})
}

func TestSemantics97_NotFoundCountsAsDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}}, Code: 404})
		pod := deletingPod("web-0", "uid-a")
		w.put(pod)
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(500 * time.Millisecond)
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q", got)
		}
		if deletes, gets := w.api.Count(fakeapi.Delete), w.api.Count(fakeapi.Get); deletes != 1 || gets != 0 {
			t.Errorf("%d DELETEs, %d GETs", deletes, gets)
		}
	})
}

// TestSemantics97_ConflictIsLookedAt: a conflict about the UID means that the pod
// is gone; any other one does not, and the pod must not be forgotten for it.
func TestSemantics97_ConflictIsLookedAt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}}, Code: 409, Times: 3})
		pod := deletingPod("web-0", "uid-a")
		w.put(pod)
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(500 * time.Millisecond)
		if got := w.memory.drops(); len(got) != 0 {
			t.Errorf("dropped %q while the object is still there", got)
		}
		w.pause(time.Minute)
		if got := w.memory.drops(); fault.Hits() != 3 || len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q after %d conflicts", got, fault.Hits())
		}
	})
}

// TestSemantics97_FinishedAndGone: the object of a finished pod that the server
// had in full is gone, as after a crash between the DELETE and its record.
func TestSemantics97_FinishedAndGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}}, Code: 500})
		pod := deletingPod("web-0", "uid-a")
		w.put(pod)
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(time.Second)
		w.stop()
		w.api.Remove("default", "web-0")
		w.restart()
		w.pause(15 * time.Second)
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q", got)
		}
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
	})
}

// TestSemantics97_DeleteCarriesItsConditions: grace 0 and the UID, whatever the
// encoding of the body.
func TestSemantics97_DeleteCarriesItsConditions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.build()
		w.put(newPod("web-0", "uid-b"))
		err := w.Syncer.api.delete(t.Context(), newPod("web-0", "uid-a"))
		if !apierrors.IsConflict(err) {
			t.Errorf("delete of another UID = %v, want a conflict", err)
		}
		if err := w.Syncer.api.delete(t.Context(), newPod("web-0", "uid-b")); err != nil {
			t.Error(err)
		}
		if _, ok := w.api.Pod("default", "web-0"); ok {
			t.Error("still there: no grace of 0")
		}
	})
}

// TestSemantics91_WriterBetweenReadAndPatch: what another client writes while a PATCH
// is on its way is in the answer. It is a difference like any other, not what the
// server makes of our status.
func TestSemantics91_WriterBetweenReadAndPatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Latency: 300 * time.Millisecond, Times: 1})
		w.memory.set(pod, running(2))
		w.pause(100 * time.Millisecond)
		err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) {
			condition(pod.Status.Conditions, v1.PodReady).Reason = "Theirs"
		})
		if err != nil {
			t.Fatal(err)
		}
		w.pause(5 * time.Second)
		live := w.onServer("web-0")
		if got := condition(live.Conditions, v1.PodReady).Reason; got != "" {
			t.Errorf("reason %q stays", got)
		}
		w.wantAcked("uid-a", 2)
	})
}

// TestSemantics80a_UIDReturnsBeforeTheWatch: the pod was removed here and comes back
// before the watch shows what was sent last. The server's answer is not forgotten.
func TestSemantics80a_UIDReturnsBeforeTheWatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := never(newPod("web-0", "uid-a"))
		w.deliver(pod, running(1))
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List, fakeapi.Watch}}, Code: 503})
		w.api.CutWatches()
		w.memory.set(pod, ended(v1.PodFailed, 1))
		w.pause(time.Second)
		w.wantAcked("uid-a", 2)
		w.memory.remove("uid-a")
		w.pause(time.Second)
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		fault.Remove()
		w.pause(20 * time.Second)
		if live := w.onServer("web-0"); live.Phase != v1.PodFailed || live.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("the server has %s %+v", live.Phase, live.ContainerStatuses[0].State)
		}
	})
}

// TestSemantics91_DifferenceForgetsTheAck: until the repair succeeded, the pod is
// pending.
func TestSemantics91_DifferenceForgetsTheAck(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.deliver(newPod("web-0", "uid-a"), running(1))
		fault := w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 500})
		if err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) { pod.Status.Message = "mine" }); err != nil {
			t.Fatal(err)
		}
		w.pause(time.Second)
		if acked, _ := w.acked("uid-a"); acked != 0 {
			t.Errorf("acked %d while the server is known to differ", acked)
		}
		fault.Remove()
		w.pause(6 * time.Second)
		w.wantAcked("uid-a", 1)
	})
}

func TestDrop_DiskFull_DeleteIsNotRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.memory.dropErr = errDisk
		pod := deletingPod("web-0", "uid-a")
		w.put(pod)
		w.memory.terminate(pod, ended(v1.PodFailed, 1))
		w.pause(time.Minute)
		if n := w.api.Count(fakeapi.Delete); n != 1 {
			t.Errorf("%d DELETEs, want 1", n)
		}
		w.memory.mu.Lock()
		w.memory.dropErr = nil
		w.memory.mu.Unlock()
		w.pause(15 * time.Second)
		if got := w.memory.drops(); len(got) != 1 {
			t.Errorf("dropped %q", got)
		}
		if n := w.api.Count(fakeapi.Delete); n != 1 {
			t.Errorf("%d DELETEs, want 1", n)
		}
	})
}

// statics maps mirror UIDs to source UIDs; an empty mirror UID means that there
// is none yet.
type statics map[types.UID]types.UID

func (s statics) PodByUID(types.UID) (*v1.Pod, bool) { return nil, false }

func (s statics) MirrorOf(uid types.UID) (types.UID, bool) {
	for mirror, source := range s {
		if source == uid {
			return mirror, true
		}
	}
	return "", false
}

func (s statics) ResolveUID(uid types.UID) types.UID {
	if source, ok := s[uid]; ok && uid != "" {
		return source
	}
	return uid
}

func mirrorPod(name string, uid types.UID) *v1.Pod {
	pod := newPod(name, uid)
	pod.Annotations = map[string]string{"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
	return pod
}

func TestSemantics3_StaticWithoutMirrorIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		static := newPod("static", "uid-s")
		w.memory.set(static, running(1))
		w.start(func(o *Options) { o.Pods = statics{"": "uid-s"} })
		w.pause(time.Minute)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
		// Its mirror appears before the pod source knows of it.
		w.put(mirrorPod("static", "uid-m"))
		w.pause(time.Minute)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
		if got := w.memory.drops(); len(got) != 0 {
			t.Errorf("dropped %q", got)
		}
	})
}

// TestSemantics3_UnknownStaticAfterRestart: the journal knows the static pod, the
// pod source doesn't yet.
func TestSemantics3_UnknownStaticAfterRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(mirrorPod("static", "uid-m"))
		w.memory.set(newPod("static", "uid-s"), running(1))
		w.start()
		w.pause(time.Minute)
		if got := w.memory.drops(); len(got) != 0 {
			t.Errorf("dropped %q", got)
		}
		if n := w.api.Count(fakeapi.Patch, fakeapi.Get); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestSemantics88_RecreatedMirrorIsUnacked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		pods := statics{"uid-m1": "uid-s", "uid-m2": "uid-s"}
		w.start(func(o *Options) { o.Pods = pods })
		w.put(mirrorPod("static", "uid-m1"))
		w.memory.set(newPod("static", "uid-s"), running(1))
		w.pause(time.Second)
		if e, _ := w.memory.Get("uid-s"); e.Acked != 1 || e.AckedUID != "uid-m1" {
			t.Fatalf("acked %d by %s", e.Acked, e.AckedUID)
		}
		w.put(mirrorPod("static", "uid-m2"))
		w.pause(time.Second)
		if e, _ := w.memory.Get("uid-s"); e.Acked != 1 || e.AckedUID != "uid-m2" {
			t.Errorf("acked %d by %s", e.Acked, e.AckedUID)
		}
		if got := w.onServer("static").Phase; got != v1.PodRunning {
			t.Errorf("phase %s on the new mirror", got)
		}
	})
}

func TestSemantics87_RecreatedWhileAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.memory.set(newPod("web-0", "uid-a"), running(1))
		w.put(newPod("web-0", "uid-b"))
		w.start()
		w.pause(15 * time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a recreated" {
			t.Errorf("dropped %q", got)
		}
	})
}

// TestSemantics87_StaleInformerIsNoProof: the pod is newer than what the informer
// shows, so it isn't the recreated one.
func TestSemantics87_StaleInformerIsNoProof(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(newPod("web-0", "uid-a"))
		w.start()
		w.pause(time.Second)
		// The watch is cut and doesn't come back.
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List, fakeapi.Watch}}, Code: 500})
		w.api.CutWatches()
		w.pause(time.Second)
		pod := newPod("web-0", "uid-b")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		w.wantAcked("uid-b", 1)
		if n := w.api.Count(fakeapi.Get); n != 1 {
			t.Errorf("%d GETs, want 1", n)
		}
		fault.Remove()
		w.pause(30 * time.Second)
		w.wantAcked("uid-b", 1)
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
	})
}

// TestSemantics84_ConflictIsLookedUpOnce: recreated, and the informer can't know.
func TestSemantics84_ConflictIsLookedUpOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List, fakeapi.Watch}}, Code: 500})
		w.api.CutWatches()
		w.pause(time.Second)
		w.put(newPod("web-0", "uid-b"))
		w.api.ResetRequests()
		w.memory.set(pod, running(2))
		w.pause(30 * time.Second)
		if patches, gets := w.api.Count(fakeapi.Patch), w.api.Count(fakeapi.Get); patches != 1 || gets != 1 {
			t.Errorf("%d PATCHes, %d GETs, want 1 of each", patches, gets)
		}
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a recreated" {
			t.Errorf("dropped %q", got)
		}
		if got := w.onServer("web-0").Phase; got != v1.PodPending {
			t.Errorf("the new pod's phase is %s", got)
		}
	})
}

func TestSemantics84_ConflictOfTheSamePodIsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 409, Times: 1})
		w.memory.set(pod, running(1))
		w.pause(500 * time.Millisecond)
		w.wantAcked("uid-a", 1)
		if patches, gets := w.api.Count(fakeapi.Patch), w.api.Count(fakeapi.Get); patches != 2 || gets != 1 {
			t.Errorf("%d PATCHes, %d GETs, want 2 and 1", patches, gets)
		}
	})
}

// TestSemantics85_TransitionOfUnsentVersion: ready → unready → ready, of which the
// server saw nothing but has an older time.
func TestSemantics85_TransitionOfUnsentVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		w.stop()
		later := metav1.NewTime(noon.Add(time.Hour))
		unready, again := running(1), running(1)
		setCondition(&unready, v1.PodReady, v1.ConditionFalse, noon)
		setCondition(&again, v1.PodReady, v1.ConditionTrue, later)
		w.memory.set(pod, unready)
		w.memory.set(pod, again)
		w.restart()
		w.pause(15 * time.Second)
		w.wantAcked("uid-a", 3)
		status := w.onServer("web-0")
		if got := condition(status.Conditions, v1.PodReady).LastTransitionTime; !got.Equal(&later) {
			t.Errorf("transition time %s, want %s", got, later)
		}
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
	})
}

func TestAcks_FlushedWithinASecondAndNeverWhenIdle(t *testing.T) { // C48
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		if w.memory.flushes != 1 {
			t.Errorf("%d flushes in the first second, want 1", w.memory.flushes)
		}
		w.pause(2 * time.Minute)
		if w.memory.flushes != 1 {
			t.Errorf("%d flushes while idle", w.memory.flushes-1)
		}
		w.stop()
		if w.memory.flushes != 2 {
			t.Errorf("%d flushes at the end, want 1", w.memory.flushes-1)
		}
	})
}

func TestAcks_FlushIsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.memory.flushErr = errDisk
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(5 * time.Second)
		w.memory.mu.Lock()
		failed := w.memory.flushes
		w.memory.flushErr = nil
		w.memory.mu.Unlock()
		if failed < 4 {
			t.Errorf("%d tries in 5 s", failed)
		}
		w.pause(time.Minute)
		if w.memory.flushes > failed+1 {
			t.Errorf("%d more flushes after it worked", w.memory.flushes-failed-1)
		}
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
	})
}

func TestSyncOnce_WithoutRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.build()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		if err := w.SyncOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantAcked("uid-a", 1)
		if w.memory.flushes == 0 {
			t.Error("acks not flushed")
		}
		if err := w.SyncOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 2, fakeapi.Patch: 1})

		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 422, Message: "no such thing"})
		w.memory.set(pod, running(2))
		err := w.SyncOnce(t.Context())
		if err == nil || !strings.Contains(err.Error(), "1 pods: patch status: no such thing") {
			t.Errorf("SyncOnce = %v", err)
		}
	})
}

func TestSyncOnce_BesideRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Latency: 200 * time.Millisecond})
		many(5, func(i int, pod *v1.Pod) { w.put(pod); w.memory.set(pod, running(1)) })
		w.start()
		if err := w.SyncOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		many(5, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 1) })
		w.pause(time.Second)
		if n := w.api.Count(fakeapi.Patch); n != 5 {
			t.Errorf("%d PATCHes, want 5", n)
		}
	})
}
