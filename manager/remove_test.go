// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/statusstore/statusstore/journal"
)

func TestSemantics98_RemoveOrphanedStatuses(t *testing.T) {
	s := open(t)
	for i := range 5 {
		s.set(pod(number(i)), runningReady())
		if _, err := s.SetPodResizePending(t.Context(), types.UID(fmt.Sprint("uid-", i)), v1.PodReasonDeferred, "no room", 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.SetPodResizePending(t.Context(), "early", v1.PodReasonDeferred, "no room", 2); err != nil {
		t.Fatal(err)
	}
	head := s.Status().HeadSequence
	removed, err := s.RemoveOrphanedStatuses(t.Context(), sets.New[types.UID]("uid-1", "uid-3", "some-mirror"))
	if want := []types.UID{"uid-0", "uid-2", "uid-4"}; err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q", removed, err, want)
	}
	check := func() {
		t.Helper()
		var left []types.UID
		for _, e := range s.Entries() {
			left = append(left, e.UID)
		}
		if want := []types.UID{"uid-1", "uid-3"}; !slices.Equal(left, want) {
			t.Errorf("left %q, want %q", left, want)
		}
		for _, uid := range removed {
			if _, ok := s.Pod(uid); ok {
				t.Errorf("pod %s is remembered", uid)
			}
			if got := s.ResizeConditions(uid); got != nil {
				t.Errorf("slots of %s: %+v", uid, got)
			}
		}
		if got := s.ResizeConditions("early"); got != nil {
			t.Errorf("slots of a pod that never had a status: %+v", got)
		}
	}
	check()
	s.reopen() // semantics 100
	check()
	var epochs []time.Time
	for e, err := range s.Journal().Events(head+1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindRemoved {
			if e.Reason != journal.ReasonOrphaned {
				t.Errorf("reason %q, want orphaned", e.Reason)
			}
			epochs = append(epochs, e.Time)
		}
	}
	if len(epochs) != 3 || !epochs[0].Equal(epochs[2]) {
		t.Errorf("removed at %v, want 3 events of one commit", epochs)
	}
	if removed, err := s.RemoveOrphanedStatuses(t.Context(), sets.New[types.UID]("uid-1", "uid-3")); err != nil || removed != nil {
		t.Errorf("again: removed %q, %v", removed, err)
	}
}

func TestRemove(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	for range 2 { // the second time there is nothing to do
		if err := s.Remove(t.Context(), "uid-a", journal.ReasonDeleted); err != nil {
			t.Fatal(err)
		}
	}
	s.wantKinds("set/set", "removed/deleted")
	if len(s.memory.pods)+len(s.locks.locks) != 0 {
		t.Errorf("%d pods and %d locks are left", len(s.memory.pods), len(s.locks.locks))
	}
}

// C51: nothing in memory grows with pods that are gone.
func TestC51_PodsComeAndGo(t *testing.T) {
	s := open(t)
	for i := range 300 {
		p := pod(number(i), never, oneContainer)
		s.set(p, status(v1.PodRunning, terminated("app", 1, "Error")))
		if _, err := s.SetPodStatus(t.Context(), p, status(v1.PodRunning, running("app", appID, true))); err == nil {
			t.Fatal("an illegal update was accepted")
		}
		// Never stored at all: refused against the status that the pod brings.
		never := pod(number(1000+i), never, oneContainer, withStatus(status(v1.PodRunning, terminated("app", 1, "Error"))))
		if _, err := s.SetPodStatus(t.Context(), never, status(v1.PodRunning, running("app", appID, true))); err == nil {
			t.Fatal("an illegal update was accepted")
		}
		if _, err := s.SetPodResizePending(t.Context(), p.UID, v1.PodReasonDeferred, "", 1); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := map[string]int{
		"entries": len(s.Entries()), "remembered pods": len(s.memory.pods), "locks": len(s.locks.locks),
		"rejections": len(s.rejections.last), "resize slots": len(s.resizes.pods),
	}
	for what, n := range left {
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}
