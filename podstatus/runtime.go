// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Sandbox is what SandboxReadyCondition needs to know of one pod sandbox.
type Sandbox struct {
	// Ready as the container runtime reports it.
	Ready bool
	// HostNetwork says that the sandbox uses the network of the node.
	HostNetwork bool
	// IP is empty while the sandbox has none.
	IP string
}

// SandboxReadyCondition computes PodReadyToStartContainers from the sandboxes of
// the pod, newest first (SEMANTICS 76). The result has no times.
func SandboxReadyCondition(pod *v1.Pod, sandboxes []Sandbox) v1.PodCondition {
	if why := sandboxLack(pod, sandboxes); why != "" {
		return condition(pod, v1.PodReadyToStartContainers, v1.ConditionFalse, ReasonSandboxNotReady, why)
	}
	return condition(pod, v1.PodReadyToStartContainers, v1.ConditionTrue, "", "")
}

// sandboxLack says why containers can't be started yet, or nothing.
func sandboxLack(pod *v1.Pod, sandboxes []Sandbox) string {
	ready := 0
	for _, s := range sandboxes {
		if s.Ready {
			ready++
		}
	}
	switch {
	case len(sandboxes) == 0:
		return "the pod has no sandbox"
	case ready > 1:
		return "the pod has more than one ready sandbox"
	case !sandboxes[0].Ready:
		return "the newest sandbox of the pod is not ready"
	case sandboxes[0].HostNetwork != pod.Spec.HostNetwork:
		return "the sandbox of the pod has another network mode than its spec"
	case !pod.Spec.HostNetwork && sandboxes[0].IP == "":
		return "the sandbox of the pod has no IP address"
	}
	return ""
}

// RuntimeContainer is what AllContainersRestartingCondition needs to know of one
// container that the container runtime has.
type RuntimeContainer struct {
	Name string
	// Exited says that it ran and ended, with ExitCode.
	Exited   bool
	ExitCode int32
}

// AllContainersRestartingCondition computes the condition of that name
// (SEMANTICS 76): True from the exit that triggers a restart of all containers
// until the runtime has none of the old ones any more. The bool is false for
// pods whose spec has no such rule; they get no condition. Previous, which may be
// nil, remembers the trigger after its container is gone. The result has neither
// times nor an observed generation.
func AllContainersRestartingCondition(pod *v1.Pod, previous *v1.PodStatus, containers []RuntimeContainer, phase v1.PodPhase) (v1.PodCondition, bool) {
	if !restartsAll(&pod.Spec) {
		return v1.PodCondition{}, false
	}
	c := v1.PodCondition{Type: v1.AllContainersRestarting, Status: v1.ConditionFalse}
	switch {
	case Terminal(phase):
		c.Reason = terminalReason(phase)
	case restartTriggered(pod, previous, containers) && anyLeft(pod, containers):
		c.Status = v1.ConditionTrue
		c.Reason = ReasonRestartAllContainersStarted
		c.Message = "the exit of a container restarts all containers of the pod"
	}
	return c, true
}

func restartTriggered(pod *v1.Pod, previous *v1.PodStatus, containers []RuntimeContainer) bool {
	if _, c := FindCondition(previous, v1.AllContainersRestarting); c != nil && c.Status == v1.ConditionTrue {
		return true
	}
	return slices.ContainsFunc(containers, func(c RuntimeContainer) bool {
		spec := findAnySpec(pod, c.Name)
		if !c.Exited || spec == nil {
			return false
		}
		rule := matchingRule(spec, c.ExitCode)
		return rule != nil && rule.Action == v1.ContainerRestartRuleActionRestartAllContainers
	})
}

func anyLeft(pod *v1.Pod, containers []RuntimeContainer) bool {
	return slices.ContainsFunc(containers, func(c RuntimeContainer) bool { return findAnySpec(pod, c.Name) != nil })
}

// findAnySpec looks among init and regular containers, whose names are distinct.
func findAnySpec(pod *v1.Pod, name string) *v1.Container {
	if c := findSpec(pod.Spec.InitContainers, name); c != nil {
		return c
	}
	return findSpec(pod.Spec.Containers, name)
}

// terminalReason is the reason that conditions have in a terminal phase.
func terminalReason(phase v1.PodPhase) string {
	if phase == v1.PodFailed {
		return ReasonPodFailed
	}
	return ReasonPodCompleted
}
