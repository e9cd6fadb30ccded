// SPDX-License-Identifier: Apache-2.0

package podstatus

import v1 "k8s.io/api/core/v1"

// Annotations that tell where a pod comes from (SEMANTICS 4).
const (
	// AnnotationSource names the source of a pod: api, file, http.
	AnnotationSource = "kubernetes.io/config.source"
	// AnnotationMirror marks the API object that stands for a static pod.
	AnnotationMirror = "kubernetes.io/config.mirror"

	sourceAPI = "api"
)

// IsStatic reports whether the pod comes from anywhere but the API server
// (SEMANTICS 4). A mirror pod read from the API server may carry the source
// annotation of its static pod, so ask IsMirror first where both can occur.
func IsStatic(pod *v1.Pod) bool {
	source, ok := pod.Annotations[AnnotationSource]
	return ok && source != sourceAPI
}

// IsMirror reports whether the pod is the API object of a static pod (SEMANTICS 4).
func IsMirror(pod *v1.Pod) bool {
	_, ok := pod.Annotations[AnnotationMirror]
	return ok
}

// OwnedCondition reports whether conditions of this type belong to the node
// agent alone (SEMANTICS 57).
func OwnedCondition(t v1.PodConditionType) bool {
	switch t {
	case v1.PodScheduled, v1.PodReady, v1.PodInitialized, v1.ContainersReady,
		v1.PodResizeInProgress, v1.PodResizePending,
		v1.PodReadyToStartContainers, v1.AllContainersRestarting:
		return true
	}
	return false
}

// SharedCondition reports whether both the node agent and others write
// conditions of this type (SEMANTICS 57).
func SharedCondition(t v1.PodConditionType) bool { return t == v1.DisruptionTarget }

// Terminal reports whether the phase is final: Succeeded or Failed.
func Terminal(phase v1.PodPhase) bool {
	return phase == v1.PodSucceeded || phase == v1.PodFailed
}

// FindCondition returns index and address of the first condition of type t, or
// -1 and nil (SEMANTICS 60). The pointer leads into s.
func FindCondition(s *v1.PodStatus, t v1.PodConditionType) (int, *v1.PodCondition) {
	if s == nil {
		return -1, nil
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return i, &s.Conditions[i]
		}
	}
	return -1, nil
}

// lastCondition returns the index of the last condition of type t, or -1. The
// last one is what counts when statuses are compared (SEMANTICS 60).
func lastCondition(conditions []v1.PodCondition, t v1.PodConditionType) int {
	for i := len(conditions) - 1; i >= 0; i-- {
		if conditions[i].Type == t {
			return i
		}
	}
	return -1
}

// findContainer returns the address of the first status of that name, or nil.
func findContainer(statuses []v1.ContainerStatus, name string) *v1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// findSpec returns the address of the first container of that name, or nil.
func findSpec(containers []v1.Container, name string) *v1.Container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

// restartableInit reports whether an init container runs alongside the regular
// ones and is restarted whenever it ends.
func restartableInit(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}
