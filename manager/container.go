// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// SetContainerReadiness stores whether a container is ready and, in the same
// event, what follows for the pod's Ready and ContainersReady (SEMANTICS 16-22).
// The container is named by its full ID, runtime://id. A mirror pod's UID is
// unknown here (SEMANTICS 6).
//
// Besides the errors that belong to outcomes, errors are those of SetPodStatus.
func (m *Manager) SetContainerReadiness(ctx context.Context, uid types.UID, containerID string, ready bool) (Outcome, error) {
	return m.editStatus(ctx, uid, journal.ReasonReadiness, func(pod *v1.Pod, stored *v1.PodStatus) (*v1.PodStatus, bool, error) {
		return podstatus.SetReady(pod, stored, containerID, ready, time.Now())
	})
}

// SetContainerStartup stores whether a container has started (SEMANTICS 16-22). No
// condition changes with it. See SetContainerReadiness.
func (m *Manager) SetContainerStartup(ctx context.Context, uid types.UID, containerID string, started bool) (Outcome, error) {
	return m.editStatus(ctx, uid, journal.ReasonStartup, func(_ *v1.Pod, stored *v1.PodStatus) (*v1.PodStatus, bool, error) {
		return podstatus.SetStarted(stored, containerID, started)
	})
}

// edit returns the status that follows from the stored one, and whether it differs.
type edit func(pod *v1.Pod, stored *v1.PodStatus) (*v1.PodStatus, bool, error)

// editStatus changes a part of a stored status.
func (m *Manager) editStatus(ctx context.Context, uid types.UID, reason journal.Reason, edit edit) (Outcome, error) {
	outcome := OutcomeNone
	change, err := m.hookRejected(m.update(ctx, uid, func(entry *projection.Entry) (*write, Change, error) {
		pod, ok := m.pods.PodByUID(uid)
		if !ok {
			outcome = OutcomeUnknownPod
			return nil, Change{}, fmt.Errorf("pod %s: %w", uid, ErrUnknownPod)
		}
		if entry == nil {
			outcome = OutcomeNoStatus
			return nil, Change{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, ErrNoStatus)
		}
		if err := checkNames(pod, entry); err != nil {
			return nil, Change{}, err
		}
		status, changed, err := edit(pod, entry.Status)
		if errors.Is(err, podstatus.ErrContainerNotFound) {
			outcome = OutcomeUnknownContainer
			return nil, Change{}, fmt.Errorf("pod %s/%s: %w: %w", pod.Namespace, pod.Name, ErrUnknownContainer, err)
		}
		if err != nil {
			return nil, Change{}, err
		}
		if !changed {
			return nil, unchanged(entry), nil
		}
		r := request{uid: uid, pod: pod, static: podstatus.IsStatic(pod)}
		return m.planStatus(ctx, r, entry, status, reason)
	}))
	switch {
	case err != nil:
		return outcome, err
	case change.Changed:
		return OutcomeApplied, nil
	default:
		return OutcomeUnchanged, nil
	}
}
