// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// What is said of a container whose end nobody saw (SEMANTICS 40).
const (
	// ReasonStatusUnknown is the reason of such a state.
	ReasonStatusUnknown = "ContainerStatusUnknown"

	unknownExitCode = 137
	unknownMessage  = "no final state of this container could be found when its pod was terminated"
)

// Terminate returns the status of a pod whose containers are all gone
// (SEMANTICS 39-46), to be passed on to ComputeTerminate. It starts from stored,
// the stored status, or from pod.Status when there is none (nil). The status in
// the pod object may be old: besides being that fallback it only serves as a
// second witness that the pod was initialized (SEMANTICS 42). A static pod keeps
// its phase. No rule stamps a time here, so the last argument is not looked at.
func Terminate(pod *v1.Pod, stored *v1.PodStatus, static bool, _ time.Time) *v1.PodStatus {
	base := stored
	if base == nil {
		base = &pod.Status
	}
	status := base.DeepCopy()
	if initialized(pod, base) || initialized(pod, &pod.Status) {
		terminateAll(status.ContainerStatuses)
	}
	terminateAll(startedInit(status.InitContainerStatuses))
	if !static && !Terminal(status.Phase) {
		status.Phase = v1.PodFailed
	}
	return status
}

// terminateAll sets each container that has not ended to terminated, in place.
func terminateAll(statuses []v1.ContainerStatus) {
	for i := range statuses {
		if c := &statuses[i]; c.State.Terminated == nil {
			c.State = v1.ContainerState{Terminated: finalState(c)}
		}
	}
}

// finalState is the terminated state of a container that will not report one.
func finalState(c *v1.ContainerStatus) *v1.ContainerStateTerminated {
	// A container that waits for its next start has an end that is known; how a
	// running one ended is not, whatever its previous life says (SEMANTICS 46).
	if last := c.LastTerminationState.Terminated; last != nil && c.State.Running == nil {
		t := last.DeepCopy()
		if t.ContainerID == "" {
			t.ContainerID = c.ContainerID
		}
		return t
	}
	return &v1.ContainerStateTerminated{
		ExitCode:    unknownExitCode,
		Reason:      ReasonStatusUnknown,
		Message:     unknownMessage,
		ContainerID: c.ContainerID,
	}
}

// initialized reports whether the regular containers of the pod may have been
// started, going by s (SEMANTICS 41).
func initialized(pod *v1.Pod, s *v1.PodStatus) bool {
	if len(pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range s.ContainerStatuses {
		if seen(&s.ContainerStatuses[i]) {
			return true
		}
	}
	n := len(s.InitContainerStatuses)
	if n == 0 {
		return false
	}
	last := &s.InitContainerStatuses[n-1]
	spec := findSpec(pod.Spec.InitContainers, last.Name)
	if spec == nil {
		return false
	}
	if restartableInit(spec) {
		return last.State.Running != nil && last.Started != nil && *last.Started
	}
	return succeeded(last.State.Terminated) || succeeded(last.LastTerminationState.Terminated)
}

// seen reports whether the container has been started at least once.
func seen(c *v1.ContainerStatus) bool {
	return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
}

func succeeded(t *v1.ContainerStateTerminated) bool { return t != nil && t.ExitCode == 0 }

// startedInit returns the statuses up to the last one that was started, at least
// the first one: the rest is still to come and stays waiting (SEMANTICS 43).
func startedInit(statuses []v1.ContainerStatus) []v1.ContainerStatus {
	for i := len(statuses) - 1; i >= 0; i-- {
		if seen(&statuses[i]) {
			return statuses[:i+1]
		}
	}
	return statuses[:min(1, len(statuses))]
}
