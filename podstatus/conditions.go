// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Reasons of the conditions computed here. Like the wording of the messages they
// are read by other programs, and a message that differs is a change
// (SEMANTICS 74), so they are spelled as node agents spell them.
const (
	ReasonUnknownContainerStatuses    = "UnknownContainerStatuses"
	ReasonPodCompleted                = "PodCompleted"
	ReasonPodFailed                   = "PodFailed"
	ReasonContainersNotReady          = "ContainersNotReady"
	ReasonContainersNotInitialized    = "ContainersNotInitialized"
	ReasonReadinessGatesNotReady      = "ReadinessGatesNotReady"
	ReasonRestartAllContainersStarted = "RestartAllContainersStarted"
	ReasonSandboxNotReady             = "PodSandboxNotReady"
)

// condition starts a condition that carries the pod's generation (SEMANTICS 76).
func condition(pod *v1.Pod, t v1.PodConditionType, status v1.ConditionStatus, reason, message string) v1.PodCondition {
	return v1.PodCondition{
		Type: t, Status: status, Reason: reason, Message: message,
		ObservedGeneration: pod.Generation,
	}
}

// ScheduledCondition is True: a pod that a node runs has been scheduled
// (SEMANTICS 75).
func ScheduledCondition(pod *v1.Pod) v1.PodCondition {
	return condition(pod, v1.PodScheduled, v1.ConditionTrue, "", "")
}

// ContainersReadyCondition says whether all regular and restartable init
// containers are ready (SEMANTICS 73). The statuses are those of both kinds; nil
// means that none is known. The result has no times.
func ContainersReadyCondition(pod *v1.Pod, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	no := func(reason, message string) v1.PodCondition {
		return condition(pod, v1.ContainersReady, v1.ConditionFalse, reason, message)
	}
	if statuses == nil {
		return no(ReasonUnknownContainerStatuses, "")
	}
	unknown, unready := unreadyContainers(pod, statuses)
	switch {
	case phase == v1.PodSucceeded && len(unknown) == 0:
		return no(ReasonPodCompleted, "")
	case phase == v1.PodFailed:
		return no(ReasonPodFailed, "")
	case len(unknown) > 0 || len(unready) > 0:
		return no(ReasonContainersNotReady, statusMessage(unknown, "unready", unready))
	}
	return condition(pod, v1.ContainersReady, v1.ConditionTrue, "", "")
}

// unreadyContainers lists the names of containers without a status and of those
// that are not ready, in spec order, restartable init containers first.
func unreadyContainers(pod *v1.Pod, statuses []v1.ContainerStatus) (unknown, unready []string) {
	look := func(name string) {
		switch c := findContainer(statuses, name); {
		case c == nil:
			unknown = append(unknown, name)
		case !c.Ready:
			unready = append(unready, name)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; restartableInit(c) {
			look(c.Name)
		}
	}
	for i := range pod.Spec.Containers {
		look(pod.Spec.Containers[i].Name)
	}
	return unknown, unready
}

// statusMessage words the two lists, unknown containers first.
func statusMessage(unknown []string, lack string, lacking []string) string {
	var parts []string
	if len(unknown) > 0 {
		parts = append(parts, fmt.Sprintf("containers with unknown status: %s", unknown))
	}
	if len(lacking) > 0 {
		parts = append(parts, fmt.Sprintf("containers with %s status: %s", lack, lacking))
	}
	return strings.Join(parts, ", ")
}

// ReadyCondition says whether the pod is ready: its containers are, and each
// readiness gate of the spec has a True condition in conditions (SEMANTICS 74).
// The other arguments are as for ContainersReadyCondition. The result has no times.
func ReadyCondition(pod *v1.Pod, conditions []v1.PodCondition, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	if c := ContainersReadyCondition(pod, statuses, phase); c.Status != v1.ConditionTrue {
		c.Type = v1.PodReady
		return c
	}
	var parts []string
	for _, gate := range pod.Spec.ReadinessGates {
		i := slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			parts = append(parts, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case conditions[i].Status != v1.ConditionTrue:
			parts = append(parts, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, conditions[i].Status))
		}
	}
	if len(parts) > 0 {
		return condition(pod, v1.PodReady, v1.ConditionFalse, ReasonReadinessGatesNotReady, strings.Join(parts, ", "))
	}
	return condition(pod, v1.PodReady, v1.ConditionTrue, "", "")
}

// NeedsReadinessReconcile reports whether the Ready condition of a pod with
// readiness gates no longer says what its other conditions and its containers
// imply (SEMANTICS 74). False without gates, and while there is no Ready condition.
func NeedsReadinessReconcile(pod *v1.Pod) bool {
	if len(pod.Spec.ReadinessGates) == 0 {
		return false
	}
	_, have := FindCondition(&pod.Status, v1.PodReady)
	if have == nil {
		return false
	}
	s := &pod.Status
	statuses := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	want := ReadyCondition(pod, s.Conditions, statuses, s.Phase)
	return have.Status != want.Status || have.Message != want.Message
}

// InitializedCondition says whether the init containers are done, or were once
// (SEMANTICS 75). The statuses are those of init and regular containers; nil
// means that none is known. Previous may be nil. The result has no times.
func InitializedCondition(pod *v1.Pod, previous *v1.PodStatus, statuses []v1.ContainerStatus, phase v1.PodPhase) v1.PodCondition {
	set := func(status v1.ConditionStatus, reason, message string) v1.PodCondition {
		return condition(pod, v1.PodInitialized, status, reason, message)
	}
	if statuses == nil && len(pod.Spec.InitContainers) > 0 {
		return set(v1.ConditionFalse, ReasonUnknownContainerStatuses, "")
	}
	var unknown, incomplete []string
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		switch c := findContainer(statuses, spec.Name); {
		case c == nil:
			unknown = append(unknown, spec.Name)
		case !passed(spec, c):
			incomplete = append(incomplete, spec.Name)
		}
	}
	switch {
	case phase == v1.PodSucceeded && len(unknown) == 0:
		return set(v1.ConditionTrue, ReasonPodCompleted, "")
	case anyRegularStarted(pod, statuses), len(unknown) == 0 && len(incomplete) == 0, wasInitialized(previous):
		// Once initialized, always initialized: when all containers restart, the
		// init ones run again and look incomplete for a while.
		return set(v1.ConditionTrue, "", "")
	}
	return set(v1.ConditionFalse, ReasonContainersNotInitialized, statusMessage(unknown, "incomplete", incomplete))
}

// passed reports whether an init container lets the next one start.
func passed(spec *v1.Container, c *v1.ContainerStatus) bool {
	if restartableInit(spec) {
		return c.Started != nil && *c.Started
	}
	return c.Ready
}

func anyRegularStarted(pod *v1.Pod, statuses []v1.ContainerStatus) bool {
	for i := range statuses {
		s := &statuses[i]
		if (s.State.Running != nil || s.State.Terminated != nil) && findSpec(pod.Spec.Containers, s.Name) != nil {
			return true
		}
	}
	return false
}

func wasInitialized(previous *v1.PodStatus) bool {
	_, c := FindCondition(previous, v1.PodInitialized)
	return c != nil && c.Status == v1.ConditionTrue
}
