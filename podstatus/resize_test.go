// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func slot(t v1.PodConditionType, reason, message string, generation int64, since, probe metav1.Time) *v1.PodCondition {
	return &v1.PodCondition{
		Type: t, Status: v1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: since, LastProbeTime: probe,
	}
}

const (
	pending    = v1.PodResizePending
	inProgress = v1.PodResizeInProgress
)

func TestSemantics30_SetPending(t *testing.T) {
	t0, t1 := at(10, 0, 0), at(11, 0, 0)
	deferred := Resize{Pending: slot(pending, "Deferred", "no room", 2, t0, t0)}
	for _, tc := range []struct {
		name            string
		in              Resize
		reason, message string
		generation      int64
		want            *v1.PodCondition
		changed         bool
	}{
		{"empty slot", Resize{}, "Deferred", "no room", 2, slot(pending, "Deferred", "no room", 2, t1, t1), true},
		{"any reason is Deferred", Resize{}, "Whatever", "m", 2, slot(pending, "Deferred", "m", 2, t1, t1), true},
		{"Infeasible", Resize{}, "Infeasible", "m", 2, slot(pending, "Infeasible", "m", 2, t1, t1), true},
		{"the same", deferred, "Deferred", "no room", 2, slot(pending, "Deferred", "no room", 2, t0, t1), false},
		{"the same once mapped", deferred, "Whatever", "no room", 2, slot(pending, "Deferred", "no room", 2, t0, t1), false},
		{"message only", deferred, "Deferred", "still none", 2, slot(pending, "Deferred", "still none", 2, t0, t1), false},
		{"generation", deferred, "Deferred", "no room", 3, slot(pending, "Deferred", "no room", 3, t0, t1), true},
		{"reason", deferred, "Infeasible", "no room", 2, slot(pending, "Infeasible", "no room", 2, t1, t1), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.InProgress = slot(inProgress, "", "", 1, t0, t0)
			before := tc.in.Copy()
			got, changed := tc.in.SetPending(tc.reason, tc.message, tc.generation, t1.Add(time.Millisecond))
			check(t, "changed", changed, tc.changed)
			check(t, "slots", got, Resize{Pending: tc.want, InProgress: before.InProgress})
			check(t, "receiver", tc.in, before)
		})
	}
}

func TestSemantics31_SetInProgress(t *testing.T) {
	t0, t1 := at(10, 0, 0), at(11, 0, 0)
	failed := Resize{InProgress: slot(inProgress, "Error", "oops", 2, t0, t0)}
	for _, tc := range []struct {
		name            string
		in              Resize
		reason, message string
		generation      int64
		want            *v1.PodCondition
		changed         bool
	}{
		{"empty slot", Resize{}, "", "", 2, slot(inProgress, "", "", 2, t1, t1), true},
		{"both empty keep the pair", failed, "", "", 2, slot(inProgress, "Error", "oops", 2, t0, t1), false},
		{"the old generation wins", failed, "", "", 9, slot(inProgress, "Error", "oops", 2, t0, t1), false},
		{"the same", failed, "Error", "oops", 2, slot(inProgress, "Error", "oops", 2, t0, t1), false},
		{"message", failed, "Error", "again", 2, slot(inProgress, "Error", "again", 2, t0, t1), true},
		{"message alone replaces both", failed, "", "again", 2, slot(inProgress, "", "again", 2, t1, t1), true},
		{"reason alone replaces both", failed, "Error", "", 2, slot(inProgress, "Error", "", 2, t0, t1), true},
		{"other reason", failed, "Other", "oops", 2, slot(inProgress, "Other", "oops", 2, t1, t1), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Pending = slot(pending, "Deferred", "", 1, t0, t0)
			before := tc.in.Copy()
			got, generation, changed := tc.in.SetInProgress(tc.reason, tc.message, tc.generation, t1.Time)
			check(t, "changed", changed, tc.changed)
			check(t, "generation", generation, tc.want.ObservedGeneration)
			check(t, "slots", got, Resize{Pending: before.Pending, InProgress: tc.want})
			check(t, "receiver", tc.in, before)
		})
	}
}

func TestSemantics32_ClearThenSetMovesTheGeneration(t *testing.T) {
	r, _, _ := Resize{}.SetInProgress("", "", 2, noon)
	r, generation, ok := r.ClearInProgress()
	if generation != 2 || !ok || r.InProgress != nil {
		t.Errorf("ClearInProgress = %d, %v, slot %v; want 2, true, empty", generation, ok, r.InProgress)
	}
	if _, generation, _ = r.SetInProgress("", "", 5, noon); generation != 5 {
		t.Errorf("generation = %d, want 5", generation)
	}
	if _, generation, ok := r.ClearInProgress(); generation != 0 || ok {
		t.Errorf("34: ClearInProgress of an empty slot = %d, %v; want 0, false", generation, ok)
	}
}

func TestSemantics33_ClearPending(t *testing.T) {
	r, _ := Resize{InProgress: slot(inProgress, "", "", 1, at(9, 0, 0), at(9, 0, 0))}.SetPending("", "", 1, noon)
	got, cleared := r.ClearPending()
	if !cleared || got.Pending != nil || got.InProgress == nil || r.Pending == nil {
		t.Errorf("ClearPending = %+v, %v from %+v", got, cleared, r)
	}
	if _, cleared := got.ClearPending(); cleared {
		t.Error("an empty slot was cleared")
	}
}

func TestSemantics35_DeferredAndInfeasible(t *testing.T) {
	for reason, want := range map[string][2]bool{"Deferred": {true, false}, "Infeasible": {false, true}, "x": {true, false}} {
		r, _ := Resize{}.SetPending(reason, "", 1, noon)
		since, deferred := r.Deferred()
		if deferred != want[0] || r.Infeasible() != want[1] {
			t.Errorf("%s: deferred %v, infeasible %v; want %v", reason, deferred, r.Infeasible(), want)
		}
		if deferred != since.Equal(noon) {
			t.Errorf("%s: since %v, want %v", reason, since, noon)
		}
	}
	r, _, _ := Resize{}.SetInProgress("Deferred", "", 1, noon)
	if _, deferred := r.Deferred(); deferred || r.Infeasible() {
		t.Error("the in-progress slot was looked at")
	}
}

func TestSemantics36_Backfill(t *testing.T) {
	api := newStatus(v1.PodRunning, conditions(
		*slot(inProgress, "Error", "oops", 4, at(1, 0, 0), at(1, 0, 0)),
		isTrueSince(v1.PodReady, at(1, 0, 0)),
		*slot(pending, "Infeasible", "never", 5, at(1, 0, 0), at(1, 0, 0))))
	now := at(12, 0, 0)
	check(t, "empty", Resize{}.Backfill(api, noon), Resize{
		Pending:    slot(pending, "Infeasible", "never", 5, now, now),
		InProgress: slot(inProgress, "Error", "oops", 4, now, now),
	})
	known := Resize{Pending: slot(pending, "Deferred", "", 2, at(2, 0, 0), at(3, 0, 0)), InProgress: slot(inProgress, "", "", 1, at(2, 0, 0), at(3, 0, 0))}
	check(t, "known", known.Backfill(api, noon), known)
	check(t, "nothing there", Resize{}.Backfill(newStatus(v1.PodRunning), noon), Resize{})
	check(t, "no status", Resize{}.Backfill(nil, noon), Resize{})
}

func TestSemantics28_ListOrder(t *testing.T) {
	r := Resize{Pending: slot(pending, "Deferred", "", 2, noonTime, noonTime), InProgress: slot(inProgress, "", "", 1, noonTime, noonTime)}
	list := r.List()
	check(t, "list", list, []v1.PodCondition{*r.Pending, *r.InProgress})
	check(t, "back", ResizeOf(append(list, isTrueSince(v1.PodReady, noonTime))), r)
	check(t, "empty", Resize{}.List(), []v1.PodCondition(nil))
}

var noonTime = at(12, 0, 0)

// The regression of fault F11: what was handed out is nobody else's.
func TestSemantics38_Copies(t *testing.T) {
	r := Resize{Pending: slot(pending, "Deferred", "", 2, noonTime, noonTime), InProgress: slot(inProgress, "Error", "", 1, noonTime, noonTime)}
	list, other := r.List(), r.Copy()
	list[0].Reason, list[1].Reason = "edited", "edited"
	other.Pending.Reason, other.InProgress.Reason = "edited", "edited"
	check(t, "pending", r.Pending.Reason, "Deferred")
	check(t, "in progress", r.InProgress.Reason, "Error")
}
