// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resize is the pair of resize conditions of a pod, kept apart from its status
// (SEMANTICS 28). A nil slot is empty. It is a value: methods return a new one
// and never write through the pointers of the old one, so that what was handed
// out stays as it was (SEMANTICS 38).
type Resize struct {
	Pending    *v1.PodCondition
	InProgress *v1.PodCondition
}

// ResizeOf takes the slots out of a list of conditions as they are, times
// included: the inverse of List.
func ResizeOf(conditions []v1.PodCondition) Resize {
	var r Resize
	for i := range conditions {
		switch c := conditions[i]; c.Type {
		case v1.PodResizePending:
			r.Pending = &c
		case v1.PodResizeInProgress:
			r.InProgress = &c
		}
	}
	return r
}

// List returns copies of the conditions that are there: pending, then in progress.
func (r Resize) List() []v1.PodCondition {
	var out []v1.PodCondition
	for _, c := range [...]*v1.PodCondition{r.Pending, r.InProgress} {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// Copy returns the same slots in memory of their own.
func (r Resize) Copy() Resize { return ResizeOf(r.List()) }

// Deferred reports whether a resize waits for room, and since when.
func (r Resize) Deferred() (since time.Time, ok bool) {
	if r.Pending == nil || r.Pending.Reason != v1.PodReasonDeferred {
		return time.Time{}, false
	}
	return r.Pending.LastTransitionTime.Time, true
}

// Infeasible reports whether the wanted resize can never be done on this node.
func (r Resize) Infeasible() bool {
	return r.Pending != nil && r.Pending.Reason == v1.PodReasonInfeasible
}

// SetPending fills the pending slot (SEMANTICS 29, 30). Every reason but
// Infeasible is stored as Deferred. The bool tells whether the slot was empty or
// its reason or generation differed; a new message alone is stored but gives
// false.
func (r Resize) SetPending(reason, message string, generation int64, now time.Time) (Resize, bool) {
	if reason != v1.PodReasonInfeasible {
		reason = v1.PodReasonDeferred
	}
	old := r.Pending
	r.Pending = resizeCondition(v1.PodResizePending, old, reason, message, generation, now)
	return r, old == nil || old.Reason != reason || old.ObservedGeneration != generation
}

// SetInProgress fills the in-progress slot (SEMANTICS 29, 31, 32) and returns the
// generation that is now in it. With no reason and no message the old pair
// stays. A generation already there wins: clear the slot to move it. The bool
// tells whether anything but times changed.
func (r Resize) SetInProgress(reason, message string, generation int64, now time.Time) (Resize, int64, bool) {
	old := r.InProgress
	if old != nil {
		generation = old.ObservedGeneration
		if reason == "" && message == "" {
			reason, message = old.Reason, old.Message
		}
	}
	r.InProgress = resizeCondition(v1.PodResizeInProgress, old, reason, message, generation, now)
	return r, generation, old == nil || old.Reason != reason || old.Message != message
}

// ClearPending empties the pending slot. The bool is false when it was empty.
// How long a deferred resize has waited (SEMANTICS 33) is told by Deferred, which
// is to be asked before.
func (r Resize) ClearPending() (Resize, bool) {
	cleared := r.Pending != nil
	r.Pending = nil
	return r, cleared
}

// ClearInProgress empties the in-progress slot and returns the generation that
// was in it, or 0 and false (SEMANTICS 34).
func (r Resize) ClearInProgress() (Resize, int64, bool) {
	if r.InProgress == nil {
		return r, 0, false
	}
	generation := r.InProgress.ObservedGeneration
	r.InProgress = nil
	return r, generation, true
}

// Backfill fills empty slots from the status that the API server has; times
// start at now. A slot that is known keeps its content and its times
// (SEMANTICS 36).
func (r Resize) Backfill(status *v1.PodStatus, now time.Time) Resize {
	if _, c := FindCondition(status, v1.PodResizePending); c != nil && r.Pending == nil {
		r.Pending = resizeCondition(c.Type, nil, c.Reason, c.Message, c.ObservedGeneration, now)
	}
	if _, c := FindCondition(status, v1.PodResizeInProgress); c != nil && r.InProgress == nil {
		r.InProgress = resizeCondition(c.Type, nil, c.Reason, c.Message, c.ObservedGeneration, now)
	}
	return r
}

// resizeCondition builds the content of a slot (SEMANTICS 29). Unlike other
// conditions, its transition time follows the reason: the status is always True.
func resizeCondition(t v1.PodConditionType, old *v1.PodCondition, reason, message string, generation int64, now time.Time) *v1.PodCondition {
	stamp := wholeSecond(metav1.NewTime(now))
	c := &v1.PodCondition{
		Type: t, Status: v1.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: generation, LastProbeTime: stamp, LastTransitionTime: stamp,
	}
	if old != nil && old.Reason == reason {
		c.LastTransitionTime = old.LastTransitionTime
	}
	return c
}
