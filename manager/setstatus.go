// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// SetPodStatus stores a pod's status (SEMANTICS 10-15). A mirror pod stands for
// its static pod. Neither the pod nor the status is changed or kept: the caller
// may reuse both. A nil error means that what Change says is durable (G1).
//
// A status that equals the stored one makes no version, unless the pod has a
// deletion timestamp.
//
// Errors: *InvalidError, *UIDConflictError, *podstatus.TransitionError for an
// illegal change, journal.ErrTooLarge, journal.ErrDegraded, ErrClosed, ErrUnknownPod for a
// mirror pod whose static pod is unknown; the stored status is then as before. If
// ctx ends while the commit is in flight, its error is returned and the status may
// still be stored.
func (m *Manager) SetPodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus) (Change, error) {
	return m.setPodStatus(ctx, pod, status, nil)
}

// SetPodStatusIf is SetPodStatus for a caller who knows which version is stored: 0
// for a pod without status. Any other is a *VersionConflictError.
func (m *Manager) SetPodStatusIf(ctx context.Context, pod *v1.Pod, status v1.PodStatus, expected journal.Version) (Change, error) {
	return m.setPodStatus(ctx, pod, status, &expected)
}

func (m *Manager) setPodStatus(ctx context.Context, pod *v1.Pod, status v1.PodStatus, expected *journal.Version) (Change, error) {
	r, err := m.identify(pod)
	if err != nil {
		return Change{}, err
	}
	status.ObservedGeneration = r.pod.Generation
	return m.hookRejected(m.update(ctx, r.uid, func(entry *projection.Entry) (*write, Change, error) {
		if err := checkEntry(r.pod, entry); err != nil {
			return nil, Change{}, err
		}
		if err := checkExpected(r.uid, entry, expected); err != nil {
			return nil, Change{}, err
		}
		return m.planStatus(ctx, r, entry, &status, journal.ReasonSet)
	}))
}

// planStatus takes a status through the common update path (SEMANTICS 49).
func (m *Manager) planStatus(ctx context.Context, r request, entry *projection.Entry, status *v1.PodStatus, reason journal.Reason) (*write, Change, error) {
	previous, cached := m.previous(r, entry)
	update := podstatus.Update{Pod: r.pod, Status: status, Previous: previous, Cached: cached, Static: r.static, Now: time.Now()}
	deleting := r.pod.DeletionTimestamp != nil
	// Only whole statuses are forced: container calls go on unforced (SEMANTICS 12, 21).
	forced := deleting && reason == journal.ReasonSet
	if !forced && podstatus.Unchanged(update) {
		m.memory.seen(r.uid, r.object)
		return nil, unchanged(entry), nil
	}
	result, err := podstatus.Compute(update)
	if err != nil {
		return nil, Change{}, m.reject(ctx, r, entry, reason, err)
	}
	if !result.Changed && !forced {
		m.memory.seen(r.uid, r.object)
		return nil, unchanged(entry), nil
	}
	finished := entry != nil && entry.Finished && !r.static
	event := r.event(reason)
	// A static pod comes back under its UID, and may do so before it was removed.
	event.First = entry != nil && entry.Finished && r.static && reason == journal.ReasonSet
	if finished {
		m.log.Info("status of a finished pod changes; it stays finished",
			logkey.UID, r.uid, logkey.Namespace, r.pod.Namespace, logkey.Name, r.pod.Name, logkey.Version, entry.Version)
	}
	return &write{
		event: event, status: result.Status, terminated: result.Terminated, object: r.object,
		added: entry == nil && !deleting, removed: finished,
	}, Change{}, nil
}

// hookRejected tells of a refused update, with no lock held.
func (m *Manager) hookRejected(c Change, err error) (Change, error) {
	if hook := m.opts.Hooks.Rejected; hook != nil {
		if t, ok := errors.AsType[*podstatus.TransitionError](err); ok {
			hook(t)
		}
	}
	return c, err
}
