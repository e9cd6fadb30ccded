// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"

	"github.com/statusstore/statusstore/manager"
)

// GetPodStatus returns a copy of the stored status, by either UID of a static pod
// and its mirror.
func (m *Manager) GetPodStatus(uid types.UID) (v1.PodStatus, bool) {
	s, ok := m.store.GetPodStatus(uid)
	if !ok {
		return v1.PodStatus{}, false
	}
	return *s, true
}

// SetPodStatus stores a status and returns a copy of what is stored then, and
// whether that is a new version. A status that is refused is logged; the stored
// one stays and is returned.
func (m *Manager) SetPodStatus(logger klog.Logger, pod *v1.Pod, s v1.PodStatus) (v1.PodStatus, bool) {
	m.pods.give(pod)
	change, err := m.store.SetPodStatus(context.Background(), pod, s)
	if err != nil {
		logger.Error(err, "Pod status was not stored", "pod", klog.KObj(pod), "podUID", pod.UID)
		stored, _ := m.GetPodStatus(pod.UID)
		return stored, false
	}
	return *change.Status(), change.Changed
}

// SetContainerReadiness stores whether a container is ready, with the pod's
// conditions that follow.
func (m *Manager) SetContainerReadiness(logger klog.Logger, uid types.UID, container kubecontainer.ContainerID, ready bool) {
	outcome, err := m.store.SetContainerReadiness(context.Background(), uid, container.String(), ready)
	report(logger, outcome, err, "change", "readiness", "podUID", uid, "containerID", container.String())
}

// SetContainerStartup stores whether a container has started.
func (m *Manager) SetContainerStartup(logger klog.Logger, uid types.UID, container kubecontainer.ContainerID, started bool) {
	outcome, err := m.store.SetContainerStartup(context.Background(), uid, container.String(), started)
	report(logger, outcome, err, "change", "startup", "podUID", uid, "containerID", container.String())
}

// SetPodVolumeHealth replaces the conditions of one volume and reports whether
// that made a new version.
func (m *Manager) SetPodVolumeHealth(logger klog.Logger, uid types.UID, volume string, conditions []v1.VolumeHealthCondition) bool {
	outcome, err := m.store.SetPodVolumeHealth(context.Background(), uid, volume, conditions)
	report(logger, outcome, err, "change", "volume health", "podUID", uid, "volumeName", volume)
	return outcome == manager.OutcomeApplied
}

// TerminatePod stores the end of a pod whose containers are all gone.
func (m *Manager) TerminatePod(logger klog.Logger, pod *v1.Pod) {
	m.pods.give(pod)
	if _, err := m.store.TerminatePod(context.Background(), pod); err != nil {
		logger.Error(err, "End of pod was not stored", "pod", klog.KObj(pod), "podUID", pod.UID)
	}
}

// RemoveOrphanedStatuses removes the statuses of all pods that are not a key of
// podUIDs, whatever the value is.
func (m *Manager) RemoveOrphanedStatuses(logger klog.Logger, podUIDs map[types.UID]bool) {
	keep := sets.KeySet(podUIDs)
	removed, err := m.store.RemoveOrphanedStatuses(context.Background(), keep)
	if err != nil {
		logger.Error(err, "Orphaned pod statuses were not removed")
	}
	for _, uid := range removed {
		logger.V(5).Info("Removed orphaned pod status", "podUID", uid)
		m.forgetIfGone(uid)
	}
	m.pods.retain(func(uid types.UID) bool {
		_, stored := m.store.Entry(uid)
		return stored || keep.Has(uid)
	})
	m.resizes.observe()
}

// report logs what a call about a part of a status did, at the levels that the
// stock manager uses.
func report(logger klog.Logger, outcome manager.Outcome, err error, about ...any) {
	about = append(about, "outcome", outcome.String())
	switch outcome {
	case manager.OutcomeApplied:
	case manager.OutcomeUnchanged, manager.OutcomeUnknownPod:
		logger.V(4).Info("Pod status needs no change", about...)
	case manager.OutcomeNoStatus, manager.OutcomeUnknownContainer:
		logger.Info("Pod status lacks what is to be changed", about...)
	default:
		logger.Error(err, "Pod status was not changed", about...)
	}
}
