// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// TestG6_PodOfAnotherNode: what is bound to another node, or to none, is looked at
// and left alone, and says so.
func TestG6_PodOfAnotherNode(t *testing.T) {
	for _, bound := range []string{"node-2", ""} {
		inWorld(t, func(t *testing.T, w *world) {
			w.start()
			pod := deletingPod("web-0", "uid-a")
			pod.Spec.NodeName = bound
			w.put(pod)
			w.memory.terminate(pod, ended(v1.PodFailed, 1))
			w.pause(30 * time.Second)
			if n := w.api.Count(fakeapi.Patch, fakeapi.Delete); n != 0 {
				t.Errorf("bound to %q: %d PATCHes and DELETEs", bound, n)
			}
			if f := w.Failing()["uid-a"]; f.Reason != "OtherNode" {
				t.Errorf("bound to %q: failing %+v", bound, f)
			}
		})
	}
}

// TestObservedIsNotSent: a status that was recorded from the server is nobody's
// word, whatever mode the agent runs in later.
func TestObservedIsNotSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		pod := newPod("web-0", "uid-a")
		w.memory.set(pod, v1.PodStatus{Phase: v1.PodPending})
		w.memory.change("uid-a", func(e *projection.Entry) { e.Reason = journal.ReasonObserved })
		pod.Status = running(1)
		w.put(pod)
		w.start()
		w.pause(30 * time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
		if got := w.onServer("web-0").Phase; got != v1.PodRunning {
			t.Errorf("the server has phase %s", got)
		}
		w.memory.set(pod, running(2)) // now somebody says it
		w.pause(time.Second)
		w.wantAcked("uid-a", 2)
	})
}

// TestSemantics97_FinishedAndNeverThere: a finished pod that the server denies
// again and again is done; one denial is not enough.
func TestSemantics97_FinishedAndNeverThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.memory.terminate(newPod("web-0", "uid-a"), ended(v1.PodFailed, 1))
		w.pause(2 * time.Second)
		if got := w.memory.drops(); len(got) != 0 {
			t.Errorf("dropped %q at once", got)
		}
		w.pause(2 * time.Minute)
		if got := w.memory.drops(); len(got) != 1 || got[0] != "uid-a deleted" {
			t.Errorf("dropped %q", got)
		}
		if n := w.api.Count(fakeapi.Get); n != goneAttempts {
			t.Errorf("%d GETs", n)
		}
	})
}
