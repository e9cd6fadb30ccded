// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// The resize slots of a pod are kept apart from its status and are not put into
// it: producers list them and do that (SEMANTICS 28). They are durable from the
// pod's first status on; before, they live in memory and become durable with it.
// A change of the probe time alone is not journalled.

// ResizeOutcome is how the wait of a deferred resize ended (SEMANTICS 33).
type ResizeOutcome string

// The outcomes. A pod that is dropped while it waits counts as terminated.
const (
	ResizeAccepted   ResizeOutcome = "accepted"
	ResizeReverted   ResizeOutcome = "reverted"
	ResizeTerminated ResizeOutcome = "terminated"
)

// SetPodResizePending fills the pending slot: reasons other than Infeasible are
// stored as Deferred (SEMANTICS 29, 30). It reports whether the slot was empty, or
// its reason or generation differed.
func (m *Manager) SetPodResizePending(ctx context.Context, uid types.UID, reason, message string, generation int64) (bool, error) {
	var changed bool
	err := m.editResize(ctx, uid, func(s slots) podstatus.Resize {
		var r podstatus.Resize
		r, changed = s.SetPending(reason, message, generation, time.Now())
		return r
	})
	return changed && err == nil, err
}

// SetPodResizeInProgress fills the in-progress slot (SEMANTICS 29, 31, 32). It
// returns the generation that counts, which is the old one if there was one, and
// whether anything but times changed.
func (m *Manager) SetPodResizeInProgress(ctx context.Context, uid types.UID, reason, message string, generation int64) (int64, bool, error) {
	var effective int64
	var changed bool
	err := m.editResize(ctx, uid, func(s slots) podstatus.Resize {
		var r podstatus.Resize
		r, effective, changed = s.SetInProgress(reason, message, generation, time.Now())
		return r
	})
	if err != nil {
		return 0, false, err
	}
	return effective, changed, nil
}

// ClearPodResizePending empties the pending slot and tells Hooks.ResizeEnded how
// long a deferred resize has waited. On an empty slot it does nothing.
func (m *Manager) ClearPodResizePending(ctx context.Context, uid types.UID, outcome ResizeOutcome) error {
	var since time.Time
	var deferred bool
	err := m.editResize(ctx, uid, func(s slots) podstatus.Resize {
		since, deferred = s.Deferred()
		r, _ := s.ClearPending()
		return r
	})
	if err == nil && deferred {
		m.resizeEnded(uid, outcome, since)
	}
	return err
}

// ClearPodResizeInProgress empties the in-progress slot and returns the generation
// that was in it; 0 and false if it was empty (SEMANTICS 34).
func (m *Manager) ClearPodResizeInProgress(ctx context.Context, uid types.UID) (int64, bool, error) {
	var generation int64
	var cleared bool
	err := m.editResize(ctx, uid, func(s slots) podstatus.Resize {
		var r podstatus.Resize
		r, generation, cleared = s.ClearInProgress()
		return r
	})
	if err != nil {
		return 0, false, err
	}
	return generation, cleared, nil
}

// BackfillPodResize fills empty slots from the statuses in pods, as the API server
// has them (SEMANTICS 36). Journalled slots win, those that were cleared included; a
// mirror pod stands for its static pod.
func (m *Manager) BackfillPodResize(ctx context.Context, pods []*v1.Pod) error {
	for _, pod := range pods {
		err := m.editResize(ctx, m.resolve(pod.UID), func(s slots) podstatus.Resize {
			return s.backfill(&pod.Status, time.Now())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ResizeConditions returns copies of a pod's resize conditions: pending, then in
// progress.
func (m *Manager) ResizeConditions(uid types.UID) []v1.PodCondition {
	return m.resizes.get(uid).List()
}

// IsPodResizeDeferred and IsPodResizeInfeasible look at the reason in the pending
// slot (SEMANTICS 35).
func (m *Manager) IsPodResizeDeferred(uid types.UID) bool {
	_, deferred := m.resizes.get(uid).Deferred()
	return deferred
}

// IsPodResizeInfeasible: see IsPodResizeDeferred.
func (m *Manager) IsPodResizeInfeasible(uid types.UID) bool {
	return m.resizes.get(uid).Infeasible()
}

// editResize changes a pod's slots under its lock and journals what is more than a
// probe.
func (m *Manager) editResize(ctx context.Context, uid types.UID, edit func(slots) podstatus.Resize) error {
	if uid == "" {
		return &InvalidError{Field: "uid", Detail: "is required"}
	}
	_, err := m.update(ctx, uid, func(entry *projection.Entry) (*write, Change, error) {
		old := m.resizes.get(uid)
		next := old.with(edit(old))
		if entry == nil || sameResize(old.Resize, next.Resize) {
			m.resizes.put(uid, next)
			return nil, Change{}, nil
		}
		return &write{
			event: journal.Event{
				Kind: journal.KindSet, UID: uid, Namespace: entry.Namespace, Name: entry.Name,
				Reason: journal.ReasonResize, Finished: entry.Finished,
			},
			status: entry.Status, resize: &next,
		}, Change{}, nil
	})
	return err
}

func (m *Manager) resizeEnded(uid types.UID, outcome ResizeOutcome, since time.Time) {
	if hook := m.opts.Hooks.ResizeEnded; hook != nil {
		hook(uid, outcome, time.Since(since))
	}
}

func (m *Manager) resizeTerminated(uid types.UID, since time.Time) {
	m.resizeEnded(uid, ResizeTerminated, since)
}
