// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/statusstore/statusstore/manager"
)

// GetPodResizeConditions returns copies: pending, then in progress.
func (m *Manager) GetPodResizeConditions(uid types.UID) []*v1.PodCondition {
	var out []*v1.PodCondition
	for _, c := range m.conditions(uid) {
		out = append(out, &c)
	}
	return out
}

// SetPodResizePendingCondition reports whether the slot was empty, or its reason
// or generation differed.
func (m *Manager) SetPodResizePendingCondition(uid types.UID, reason, message string, generation int64) bool {
	changed, err := m.store.SetPodResizePending(context.Background(), uid, reason, message, generation)
	m.resized(uid, err)
	return changed
}

// SetPodResizeInProgressCondition returns the generation that counts, and whether
// anything but times changed.
func (m *Manager) SetPodResizeInProgressCondition(uid types.UID, reason, message string, generation int64) (int64, bool) {
	effective, changed, err := m.store.SetPodResizeInProgress(context.Background(), uid, reason, message, generation)
	m.resized(uid, err)
	return effective, changed
}

// ClearPodResizePendingCondition empties the slot and records how long a deferred
// resize has waited.
func (m *Manager) ClearPodResizePendingCondition(uid types.UID, resolution metrics.DeferredResizeResolution) {
	m.resizes.clearing.Lock() // so that a resize is recorded once
	defer m.resizes.clearing.Unlock()
	since, deferred := m.deferredSince(uid)
	err := m.store.ClearPodResizePending(context.Background(), uid, manager.ResizeOutcome(resolution))
	// The hook takes care of those that end with their pod.
	if err == nil && deferred && resolution != metrics.DeferredResizeResolutionTerminated {
		m.resizes.ended(uid, resolution, time.Since(since))
	}
	m.resized(uid, err)
}

// ClearPodResizeInProgressCondition returns the generation that was in the slot;
// 0 and false if it was empty.
func (m *Manager) ClearPodResizeInProgressCondition(uid types.UID) (int64, bool) {
	generation, cleared, err := m.store.ClearPodResizeInProgress(context.Background(), uid)
	m.resized(uid, err)
	return generation, cleared
}

// IsPodResizeDeferred looks at the reason in the pending slot.
func (m *Manager) IsPodResizeDeferred(uid types.UID) bool { return m.store.IsPodResizeDeferred(uid) }

// IsPodResizeInfeasible looks at the reason in the pending slot.
func (m *Manager) IsPodResizeInfeasible(uid types.UID) bool {
	return m.store.IsPodResizeInfeasible(uid)
}

// BackfillPodResizeConditions fills empty slots from the pods' own statuses. What
// the journal has is newer and stays.
func (m *Manager) BackfillPodResizeConditions(pods []*v1.Pod) {
	if err := m.store.BackfillPodResize(context.Background(), pods); err != nil {
		m.log.Error(err, "Resize conditions of pods were not stored")
	}
	for _, pod := range pods {
		m.resizes.touched(m.pods.ResolveUID(pod.UID))
	}
	m.resizes.observe()
}

func (m *Manager) deferredSince(uid types.UID) (time.Time, bool) {
	for _, c := range m.conditions(uid) {
		if c.Type == v1.PodResizePending && c.Reason == v1.PodReasonDeferred {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

func (m *Manager) conditions(uid types.UID) []v1.PodCondition { return m.store.ResizeConditions(uid) }

func (m *Manager) resized(uid types.UID, err error) {
	if err != nil {
		m.log.Error(err, "Resize condition was not stored", "podUID", uid)
	}
	m.resizes.touched(uid)
	m.resizes.observe()
}
