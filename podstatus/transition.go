// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// CheckTransition returns a *TransitionError for the first container whose state
// may not follow the previous one, or nil (SEMANTICS 67-72).
//
// It is as strict as the API server: that one refuses the whole patch, and
// refuses it again on every retry, so a status that passes here and not there
// would never be delivered.
func CheckTransition(pod *v1.Pod, previous, next *v1.PodStatus) error {
	var err error
	eachRefused(pod, previous, next, func(r refusal) bool {
		err = r.err(pod)
		return false
	})
	return err
}

// refusal is one container whose new state may not be stored.
type refusal struct {
	old *v1.ContainerStatus
	// next is the list that has, or lacks, the new state.
	next   []v1.ContainerStatus
	reason string
}

func (r refusal) err(pod *v1.Pod) *TransitionError {
	to := "absent"
	for i := range r.next {
		if s := &r.next[i]; s.Name == r.old.Name {
			to = stateName(&s.State)
			if s.State.Terminated == nil {
				break
			}
		}
	}
	return &TransitionError{
		UID: pod.UID, Container: r.old.Name,
		From: stateName(&r.old.State), To: to, Reason: r.reason,
	}
}

// restore puts the old state back in place of the refused one.
func (r refusal) restore() {
	for i := range r.next {
		if r.next[i].Name == r.old.Name {
			r.next[i].State = *r.old.State.DeepCopy()
		}
	}
}

// eachRefused calls yield for every refused container until it returns false.
func eachRefused(pod *v1.Pod, previous, next *v1.PodStatus, yield func(refusal) bool) {
	if !restartsAll(&pod.Spec) &&
		(!eachRefusedRegular(pod, previous.ContainerStatuses, next.ContainerStatuses, yield) ||
			!eachRefusedInit(pod, previous.InitContainerStatuses, next.InitContainerStatuses, yield)) {
		return
	}
	for i := range previous.EphemeralContainerStatuses {
		old := &previous.EphemeralContainerStatuses[i]
		if leavesTerminated(old, next.EphemeralContainerStatuses) &&
			!yield(refusal{old, next.EphemeralContainerStatuses, "an ephemeral container never starts again"}) {
			return
		}
	}
}

func eachRefusedRegular(pod *v1.Pod, previous, next []v1.ContainerStatus, yield func(refusal) bool) bool {
	for i := range previous {
		old := &previous[i]
		if !leavesTerminated(old, next) {
			continue
		}
		spec := findSpec(pod.Spec.Containers, old.Name)
		if !mayRestart(pod, spec, old) && !yield(refusal{old, next, whyNot(pod, spec, old)}) {
			return false
		}
	}
	return true
}

// eachRefusedInit also refuses whatever becomes of a container that the spec
// does not have (SEMANTICS 72).
func eachRefusedInit(pod *v1.Pod, previous, next []v1.ContainerStatus, yield func(refusal) bool) bool {
	for i := range previous {
		old := &previous[i]
		spec := findSpec(pod.Spec.InitContainers, old.Name)
		mismatch := spec == nil && hasSpec(pod)
		if !mismatch && (!leavesTerminated(old, next) || mayRestart(pod, spec, old)) {
			continue
		}
		if !yield(refusal{old, next, whyNot(pod, spec, old)}) {
			return false
		}
	}
	return true
}

// hasSpec is false for a pod object that was passed without its spec: a pod has
// at least one container. Only the pod's own policy can be judged then.
func hasSpec(pod *v1.Pod) bool { return len(pod.Spec.Containers) > 0 }

// leavesTerminated reports whether old is terminated and a status of its name in
// next is not (SEMANTICS 67). Absent from next is no change.
func leavesTerminated(old *v1.ContainerStatus, next []v1.ContainerStatus) bool {
	if old.State.Terminated == nil {
		return false
	}
	for i := range next {
		if next[i].Name == old.Name && next[i].State.Terminated == nil {
			return true
		}
	}
	return false
}

// mayRestart reports whether a terminated container may run again (SEMANTICS 69,
// 70): its own policy decides where it has one, the pod's otherwise. One that is
// not in the spec has nothing that would start it.
func mayRestart(pod *v1.Pod, c *v1.Container, old *v1.ContainerStatus) bool {
	if c == nil && hasSpec(pod) {
		return false
	}
	exitCode := old.State.Terminated.ExitCode
	if c != nil && c.RestartPolicy != nil {
		if rule := matchingRule(c, exitCode); rule != nil {
			switch rule.Action {
			case v1.ContainerRestartRuleActionRestart, v1.ContainerRestartRuleActionRestartAllContainers:
				return true
			}
		}
		switch *c.RestartPolicy {
		case v1.ContainerRestartPolicyAlways:
			return true
		case v1.ContainerRestartPolicyOnFailure:
			return exitCode != 0
		case v1.ContainerRestartPolicyNever:
			return false
		}
	}
	switch pod.Spec.RestartPolicy {
	case v1.RestartPolicyOnFailure:
		return exitCode != 0
	case v1.RestartPolicyNever:
		return false
	}
	return true
}

// matchingRule returns the first restart rule that the exit code meets, or nil.
func matchingRule(c *v1.Container, exitCode int32) *v1.ContainerRestartRule {
	for i := range c.RestartPolicyRules {
		codes := c.RestartPolicyRules[i].ExitCodes
		if codes == nil {
			continue
		}
		listed := slices.Contains(codes.Values, exitCode)
		if codes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn && listed ||
			codes.Operator == v1.ContainerRestartRuleOnExitCodesOpNotIn && !listed {
			return &c.RestartPolicyRules[i]
		}
	}
	return nil
}

// restartsAll reports whether the end of some container may restart all of them
// (SEMANTICS 68).
func restartsAll(spec *v1.PodSpec) bool {
	restarts := func(r v1.ContainerRestartRule) bool {
		return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
	}
	for _, containers := range [...][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if slices.ContainsFunc(containers[i].RestartPolicyRules, restarts) {
				return true
			}
		}
	}
	return false
}

// whyNot words the reason of a refusal.
func whyNot(pod *v1.Pod, spec *v1.Container, old *v1.ContainerStatus) string {
	if spec == nil && hasSpec(pod) {
		return "the pod spec has no such container"
	}
	whose, policy := "pod", string(pod.Spec.RestartPolicy)
	if spec != nil && spec.RestartPolicy != nil {
		whose, policy = "container", string(*spec.RestartPolicy)
	}
	return fmt.Sprintf("restart policy %q of the %s does not start it again after exit code %d",
		policy, whose, old.State.Terminated.ExitCode)
}

// stateName names the member that is set; none of them means waiting.
func stateName(s *v1.ContainerState) string {
	switch {
	case s.Terminated != nil:
		return "terminated"
	case s.Running != nil:
		return "running"
	}
	return "waiting"
}
