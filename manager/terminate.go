// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// TerminatePod stores the end of a pod whose containers are all gone (SEMANTICS
// 39-48): containers without a known end get one, the phase becomes terminal, and
// the pod is finished: once the server's copy is terminal and being deleted,
// the object is deleted for good. What is stored counts, not the status inside pod.
//
// It always makes a version and is never refused for what the status says. Errors
// are those of SetPodStatus, *podstatus.TransitionError aside.
func (m *Manager) TerminatePod(ctx context.Context, pod *v1.Pod) (Change, error) {
	r, err := m.identify(pod)
	if err != nil {
		return Change{}, err
	}
	return m.update(ctx, r.uid, func(entry *projection.Entry) (*write, Change, error) {
		if err := checkEntry(r.pod, entry); err != nil {
			return nil, Change{}, err
		}
		now := time.Now()
		var stored *v1.PodStatus
		if entry != nil {
			stored = entry.Status
		}
		m.logOddPhase(r, stored)
		previous, cached := m.previous(r, entry)
		result := podstatus.ComputeTerminate(podstatus.Update{
			Pod: r.pod, Status: podstatus.Terminate(r.pod, stored, r.static, now),
			Previous: previous, Cached: cached, Static: r.static, Now: now,
		})
		event := r.event(journal.ReasonTerminate)
		event.Finished = true
		return &write{
			event: event, status: result.Status, terminated: result.Terminated, object: r.object, removed: true,
		}, Change{}, nil
	})
}

// logOddPhase reports a phase that no pod should end in (SEMANTICS 45).
func (m *Manager) logOddPhase(r request, stored *v1.PodStatus) {
	if stored == nil {
		stored = &r.pod.Status
	}
	switch stored.Phase {
	case v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed:
	default:
		if !r.static {
			m.log.Error("pod ends in an unexpected phase; it becomes failed",
				logkey.UID, r.uid, logkey.Namespace, r.pod.Namespace, logkey.Name, r.pod.Name, "phase", stored.Phase)
		}
	}
}

// FinishPod marks a pod as finished: its resources are reclaimed, so its object
// may be deleted once it is terminal on the server (SEMANTICS 96). The status
// stays as it is. Either UID of a static pod and its mirror will do. A pod that is
// finished already stays unchanged.
//
// Errors: ErrUnknownPod, ErrNoStatus, journal.ErrDegraded, ErrClosed.
func (m *Manager) FinishPod(ctx context.Context, uid types.UID) (Change, error) {
	uid = m.resolve(uid)
	return m.update(ctx, uid, func(entry *projection.Entry) (*write, Change, error) {
		if entry == nil {
			if pod, ok := m.pods.PodByUID(uid); ok {
				return nil, Change{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, ErrNoStatus)
			}
			return nil, Change{}, fmt.Errorf("pod %s: %w", uid, ErrUnknownPod)
		}
		if entry.Finished {
			return nil, unchanged(entry), nil
		}
		return &write{
			event: journal.Event{
				Kind: journal.KindFinished, UID: uid, Namespace: entry.Namespace, Name: entry.Name, Finished: true,
			},
			status: entry.Status, removed: true,
		}, Change{}, nil
	})
}
