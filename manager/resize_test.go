// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestSemantics28_SlotsSurviveARestart(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	pending, err := s.SetPodResizePending(t.Context(), "uid-a", "Whatever", "no room", 3)
	if err != nil || !pending {
		t.Fatalf("pending: %v, %v", pending, err)
	}
	generation, changed, err := s.SetPodResizeInProgress(t.Context(), "uid-a", "", "", 2)
	if err != nil || !changed || generation != 2 {
		t.Fatalf("in progress: %d, %v, %v", generation, changed, err)
	}
	want := s.ResizeConditions("uid-a")
	if len(want) != 2 || want[0].Type != v1.PodResizePending || want[0].Reason != v1.PodReasonDeferred || want[1].Type != v1.PodResizeInProgress {
		t.Fatalf("slots %+v, want pending (deferred), then in progress", want)
	}
	if len(s.stored("uid-a").Conditions) != 4 {
		t.Error("the slots were put into the status")
	}
	s.wantKinds("set/set", "set/resize", "set/resize")
	// Other events carry the slots on.
	s.reopen()
	s.set(pod(), runningReady(text("new")))
	s.reopen()
	if diff := cmp.Diff(want, s.ResizeConditions("uid-a")); diff != "" {
		t.Errorf("slots after the restart (-before +after):\n%s", diff)
	}
	if !s.IsPodResizeDeferred("uid-a") || s.IsPodResizeInfeasible("uid-a") {
		t.Error("semantics 35: want deferred, not infeasible")
	}
	if got, cleared, err := s.ClearPodResizeInProgress(t.Context(), "uid-a"); err != nil || !cleared || got != 2 {
		t.Errorf("semantics 34: cleared %d, %v, %v", got, cleared, err)
	}
	if got, cleared, err := s.ClearPodResizeInProgress(t.Context(), "uid-a"); err != nil || cleared || got != 0 {
		t.Errorf("semantics 34: cleared again %d, %v, %v", got, cleared, err)
	}
	if err := s.ClearPodResizePending(t.Context(), "uid-a", ResizeAccepted); err != nil {
		t.Error(err)
	}
	s.reopen()
	if got := s.ResizeConditions("uid-a"); got != nil {
		t.Errorf("slots %+v, want them empty", got)
	}
}

func TestSemantics29_ProbesAreNotJournalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		s.set(pod(), runningReady())
		set := func(message string) bool {
			t.Helper()
			changed, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonDeferred, message, 3)
			if err != nil {
				t.Fatal(err)
			}
			return changed
		}
		set("no room")
		first := s.ResizeConditions("uid-a")[0]
		time.Sleep(time.Hour)
		if set("no room") {
			t.Error("a probe is a change")
		}
		probed := s.ResizeConditions("uid-a")[0]
		if !probed.LastTransitionTime.Equal(&first.LastTransitionTime) || probed.LastProbeTime.Sub(first.LastProbeTime.Time) != time.Hour {
			t.Errorf("probed %+v after %+v", probed, first)
		}
		s.wantKinds("set/set", "set/resize")
		if set("less room") {
			t.Error("semantics 30: a new message alone is a change")
		}
		s.wantKinds("set/set", "set/resize", "set/resize")
	})
}

func TestResize_BeforeTheFirstStatus(t *testing.T) {
	s := open(t)
	if _, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonInfeasible, "never", 3); err != nil {
		t.Fatal(err)
	}
	s.wantKinds()
	s.set(pod(), runningReady())
	s.wantVersion("uid-a", 1)
	s.reopen()
	if !s.IsPodResizeInfeasible("uid-a") {
		t.Error("the slot did not become durable with the first status")
	}
}

func TestSemantics33_HowLongADeferredResizeWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type ended struct {
			UID     types.UID
			Outcome ResizeOutcome
			Waited  time.Duration
		}
		var got []ended
		s := open(t, func(o *Options) {
			o.Hooks.ResizeEnded = func(uid types.UID, outcome ResizeOutcome, waited time.Duration) {
				got = append(got, ended{uid, outcome, waited})
			}
		})
		wait := func(uid types.UID, reason string) {
			if _, err := s.SetPodResizePending(t.Context(), uid, reason, "", 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		clear := func(outcome ResizeOutcome) {
			if err := s.ClearPodResizePending(t.Context(), "uid-a", outcome); err != nil {
				t.Fatal(err)
			}
		}
		s.set(pod(), runningReady())
		clear(ResizeAccepted) // empty
		wait("uid-a", v1.PodReasonDeferred)
		s.reopen()
		clear(ResizeReverted)
		wait("uid-a", v1.PodReasonInfeasible)
		clear(ResizeReverted)
		wait("uid-a", v1.PodReasonDeferred)
		wait("early", v1.PodReasonDeferred)
		if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		want := []ended{{"uid-a", ResizeReverted, time.Minute}, {"uid-a", ResizeTerminated, 2 * time.Minute}, {"early", ResizeTerminated, time.Minute}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestSemantics36_Backfill(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	if _, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonDeferred, "ours", 3); err != nil {
		t.Fatal(err)
	}
	ours := s.ResizeConditions("uid-a")
	api := pod(withStatus(status(v1.PodRunning,
		condition(v1.PodResizePending, v1.ConditionTrue, message("theirs")),
		condition(v1.PodResizeInProgress, v1.ConditionTrue, message("theirs")))))
	for range 2 {
		if err := s.BackfillPodResize(t.Context(), []*v1.Pod{api}); err != nil {
			t.Fatal(err)
		}
		got := s.ResizeConditions("uid-a")
		if len(got) != 2 || cmp.Diff(ours[0], got[0]) != "" || got[1].Message != "theirs" {
			t.Errorf("slots %+v, want ours pending and theirs in progress", got)
		}
		s.reopen()
	}
	s.wantKinds("set/set", "set/resize", "set/resize")
}

// TestSemantics36_BackfillLeavesClearedSlots: the API server may still show a resize
// that ended just before the agent did.
func TestSemantics36_BackfillLeavesClearedSlots(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	api := pod(withStatus(status(v1.PodRunning,
		condition(v1.PodResizePending, v1.ConditionTrue, message("old")),
		condition(v1.PodResizeInProgress, v1.ConditionTrue, message("old")))))
	backfill := func(want ...v1.PodConditionType) {
		t.Helper()
		for range 2 {
			if err := s.BackfillPodResize(t.Context(), []*v1.Pod{api}); err != nil {
				t.Fatal(err)
			}
			var got []v1.PodConditionType
			for _, c := range s.ResizeConditions("uid-a") {
				got = append(got, c.Type)
			}
			if !slices.Equal(got, want) {
				t.Errorf("slots %v, want %v", got, want)
			}
			s.reopen()
		}
	}
	backfill(v1.PodResizePending, v1.PodResizeInProgress)
	if err := s.ClearPodResizePending(t.Context(), "uid-a", ResizeAccepted); err != nil {
		t.Fatal(err)
	}
	backfill(v1.PodResizeInProgress)
	if _, cleared, err := s.ClearPodResizeInProgress(t.Context(), "uid-a"); err != nil || !cleared {
		t.Fatalf("cleared %v, %v", cleared, err)
	}
	backfill()
	if _, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonDeferred, "anew", 2); err != nil {
		t.Fatal(err)
	}
	backfill(v1.PodResizePending)
	if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.set(pod(), runningReady())
	backfill(v1.PodResizePending, v1.PodResizeInProgress) // another life
}

func TestSemantics37_Counts(t *testing.T) {
	s := open(t)
	priority := func(p int32) func(*v1.Pod) { return func(pod *v1.Pod) { pod.Spec.Priority = &p } }
	for i, p := range []*v1.Pod{pod(number(0)), pod(number(1), priority(0)), pod(number(2), priority(5)), pod(number(3), priority(2_000_001_000)), pod(number(4), priority(-1))} {
		s.set(p, runningReady())
		reason := v1.PodReasonDeferred
		if i == 2 {
			reason = v1.PodReasonInfeasible
		}
		if _, err := s.SetPodResizePending(t.Context(), p.UID, reason, "", 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.SetPodResizePending(t.Context(), "nobody", v1.PodReasonDeferred, "", 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SetPodResizeInProgress(t.Context(), "uid-0", "", "", 1); err != nil {
		t.Fatal(err)
	}
	want := []ResizeCount{
		{"in_progress", "", "", 1},
		{"pending", v1.PodReasonDeferred, "default", 2},
		{"pending", v1.PodReasonDeferred, "low", 1},
		{"pending", v1.PodReasonDeferred, "system", 1},
		{"pending", v1.PodReasonDeferred, "unknown", 1},
		{"pending", v1.PodReasonInfeasible, "high", 1},
	}
	sort := cmpopts.SortSlices(func(a, b ResizeCount) bool { return a.State+a.Reason+a.Priority < b.State+b.Reason+b.Priority })
	if diff := cmp.Diff(want, s.ResizeCounts(), sort); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestSemantics38_SlotsAreCopies: what was handed out is the caller's own.
func TestSemantics38_SlotsAreCopies(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	if _, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonDeferred, "ours", 1); err != nil {
		t.Fatal(err)
	}
	s.ResizeConditions("uid-a")[0].Message = "edited"
	if got := s.ResizeConditions("uid-a")[0].Message; got != "ours" {
		t.Errorf("message %q, want ours", got)
	}
}
