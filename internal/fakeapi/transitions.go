// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateTransitions refuses to let a terminated container run again unless
// its restart policy says that it does.
func validateTransitions(next, old *corev1.Pod) field.ErrorList {
	spec := &old.Spec
	restarts := func(containers []corev1.Container) func(corev1.ContainerStatus) bool {
		return func(status corev1.ContainerStatus) bool {
			i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == status.Name })
			return i >= 0 && mayRestart(&containers[i], spec.RestartPolicy, status.State.Terminated.ExitCode)
		}
	}
	never := func(corev1.ContainerStatus) bool { return false }

	var errs field.ErrorList
	// One rule that restarts all containers frees all of them, whatever their
	// own policy, except the ephemeral ones.
	if !anyRestartsAll(spec) {
		errs = append(errs, findRevivals(next.Status.ContainerStatuses, old.Status.ContainerStatuses,
			restarts(spec.Containers), statusPath.Child("containerStatuses"))...)
		errs = append(errs, findRevivals(next.Status.InitContainerStatuses, old.Status.InitContainerStatuses,
			restarts(spec.InitContainers), statusPath.Child("initContainerStatuses"))...)
	}
	return append(errs, findRevivals(next.Status.EphemeralContainerStatuses, old.Status.EphemeralContainerStatuses,
		never, statusPath.Child("ephemeralContainerStatuses"))...)
}

// findRevivals lists the containers that leave the terminated state without
// being allowed to. One that is missing in next doesn't count.
func findRevivals(next, old []corev1.ContainerStatus, mayRestart func(corev1.ContainerStatus) bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, before := range old {
		if before.State.Terminated == nil {
			continue
		}
		revived := slices.ContainsFunc(next, func(after corev1.ContainerStatus) bool {
			return after.Name == before.Name && after.State.Terminated == nil
		})
		if revived && !mayRestart(before) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("state"), "a terminated container that doesn't restart stays terminated"))
		}
	}
	return errs
}

func anyRestartsAll(spec *corev1.PodSpec) bool {
	hasRule := func(container corev1.Container) bool {
		return slices.ContainsFunc(container.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	}
	return slices.ContainsFunc(spec.InitContainers, hasRule) || slices.ContainsFunc(spec.Containers, hasRule)
}

// mayRestart judges by the first matching rule of the container, then by its
// own policy, then by that of the pod.
func mayRestart(container *corev1.Container, podPolicy corev1.RestartPolicy, exitCode int32) bool {
	policy := string(podPolicy)
	if container.RestartPolicy != nil {
		policy = string(*container.RestartPolicy)
		if slices.ContainsFunc(container.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool { return ruleMatches(rule, exitCode) }) {
			return true // each action that exists restarts
		}
	}
	switch policy {
	case string(corev1.RestartPolicyNever):
		return false
	case string(corev1.RestartPolicyOnFailure):
		return exitCode != 0
	default:
		return true
	}
}

func ruleMatches(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	default:
		return false
	}
}
