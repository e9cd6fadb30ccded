// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetReady returns the status with the readiness of one container set and the
// conditions Ready and ContainersReady computed anew (SEMANTICS 16-19). The
// container is named by its full ID, runtime://id.
//
// The status is nil and the bool false when the container already has that
// value. An unknown ID is ErrContainerNotFound.
func SetReady(pod *v1.Pod, status *v1.PodStatus, containerID string, ready bool, now time.Time) (*v1.PodStatus, bool, error) {
	c := findByID(status, containerID)
	if c == nil {
		return nil, false, fmt.Errorf("set readiness of %q: %w", containerID, ErrContainerNotFound)
	}
	if c.Ready == ready {
		return nil, false, nil
	}
	out := status.DeepCopy()
	findByID(out, containerID).Ready = ready
	statuses := slices.Concat(out.InitContainerStatuses, out.ContainerStatuses)
	stamp := wholeSecond(metav1.NewTime(now))
	replaceCondition(out, ReadyCondition(pod, out.Conditions, statuses, out.Phase), stamp)
	replaceCondition(out, ContainersReadyCondition(pod, statuses, out.Phase), stamp)
	return out, true, nil
}

// SetStarted returns the status with the startup of one container set, and
// nothing else changed (SEMANTICS 20). An unset value differs from both true and
// false. Results are as for SetReady.
func SetStarted(status *v1.PodStatus, containerID string, started bool) (*v1.PodStatus, bool, error) {
	c := findByID(status, containerID)
	if c == nil {
		return nil, false, fmt.Errorf("set startup of %q: %w", containerID, ErrContainerNotFound)
	}
	if c.Started != nil && *c.Started == started {
		return nil, false, nil
	}
	out := status.DeepCopy()
	findByID(out, containerID).Started = new(started)
	return out, true, nil
}

// findByID looks among regular, then init statuses (SEMANTICS 17). The empty ID
// is that of containers not created yet and names none of them.
func findByID(status *v1.PodStatus, containerID string) *v1.ContainerStatus {
	if status == nil || containerID == "" {
		return nil
	}
	for _, statuses := range [...][]v1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].ContainerID == containerID {
				return &statuses[i]
			}
		}
	}
	return nil
}

// replaceCondition puts c in the place of the first condition of its type, or at
// the end, with the time at which it got its status.
func replaceCondition(s *v1.PodStatus, c v1.PodCondition, now metav1.Time) {
	i, old := FindCondition(s, c.Type)
	c.LastTransitionTime = transitionTime(&c, old, now)
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	s.Conditions[i] = c
}
