// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// transition is a container that terminated and then is reported otherwise.
type transition struct {
	name    string
	edits   []func(*corev1.Pod)
	list    string // field of the status, containerStatuses if empty
	exit    int
	next    string // state, waiting if empty
	allowed bool
}

func transitionCases() []testCase {
	never := restartPolicy(corev1.RestartPolicyNever)
	onFailure := restartPolicy(corev1.RestartPolicyOnFailure)
	always := restartPolicy(corev1.RestartPolicyAlways)

	transitions := []transition{
		{name: "NeverZero", edits: edits(never)},
		{name: "NeverNonZero", edits: edits(never), exit: 1},
		{name: "NeverToRunning", edits: edits(never), exit: 1, next: `{"running":{}}`},
		{name: "NeverToNoState", edits: edits(never), exit: 1, next: `{}`},
		{name: "NeverToOtherExitCode", edits: edits(never), exit: 1, next: `{"terminated":{"exitCode":2}}`, allowed: true},
		{name: "OnFailureZero", edits: edits(onFailure)},
		{name: "OnFailureNonZero", edits: edits(onFailure), exit: 1, allowed: true},
		{name: "AlwaysZero", edits: edits(always), allowed: true},
		{name: "OwnPolicyNeverUnderAlways", edits: edits(always, own("Never")), exit: 1},
		{name: "OwnPolicyAlwaysUnderNever", edits: edits(never, own("Always")), allowed: true},
		{name: "OwnPolicyOnFailureZero", edits: edits(always, own("OnFailure"))},
		{name: "OwnPolicyOnFailureNonZero", edits: edits(never, own("OnFailure")), exit: 1, allowed: true},
		{name: "RuleMatches", edits: edits(never, own("Never", rule("In", 42))), exit: 42, allowed: true},
		{name: "RuleDoesNotMatch", edits: edits(never, own("Never", rule("In", 42))), exit: 1},
		{name: "RuleNotInMatches", edits: edits(never, own("Never", rule("NotIn", 0))), exit: 1, allowed: true},
		{name: "RestartAllRule", edits: edits(never, restartAllSidekick), exit: 1, allowed: true},
		{name: "StatusWithoutContainer", edits: edits(always, renamed), exit: 1},

		{name: "InitNever", edits: edits(never, initContainer("")), list: "initContainerStatuses"},
		{name: "InitAlways", edits: edits(always, initContainer("")), list: "initContainerStatuses", allowed: true},
		{name: "InitRestartable", edits: edits(never, initContainer("Always")), list: "initContainerStatuses", allowed: true},
		{name: "EphemeralAlways", edits: edits(always), list: "ephemeralContainerStatuses", exit: 1},
	}
	var cases []testCase
	for _, tr := range transitions {
		cases = append(cases, testCase{tr.name, tr.run})
	}
	return append(cases, testCase{"MissingInNext", func(b *bench) {
		pod := b.create("a", never)
		b.mustPatch(pod.Name, containerStatus("containerStatuses", `{"terminated":{"exitCode":1}}`))
		b.mustPatch(pod.Name, `{"status":{"containerStatuses":null}}`)
		// And once it is missing it may come back as anything.
		b.mustPatch(pod.Name, containerStatus("containerStatuses", `{"running":{}}`))
	}})
}

func (tr transition) run(b *bench) {
	list, next := tr.list, tr.next
	if list == "" {
		list = "containerStatuses"
	}
	if next == "" {
		next = `{"waiting":{"reason":"CrashLoopBackOff"}}`
	}
	pod := b.create("a", tr.edits...)
	before := b.mustPatch(pod.Name, containerStatus(list, fmt.Sprintf(`{"terminated":{"exitCode":%d}}`, tr.exit)))
	_, err := b.patch(pod.Name, containerStatus(list, next))
	if tr.allowed {
		if err != nil {
			b.Errorf("refused: %v", err)
		}
		return
	}
	b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	b.wantCause(err, "status."+list+"[0].state")
	if got := b.get(pod.Name); got.ResourceVersion != before.ResourceVersion {
		b.Errorf("resourceVersion went from %s to %s", before.ResourceVersion, got.ResourceVersion)
	}
}

// containerStatus is a patch with one status, that of container "app".
func containerStatus(list, state string) string {
	return fmt.Sprintf(`{"status":{%q:[{"name":"app","image":"i","imageID":"","ready":false,"restartCount":0,"state":%s}]}}`, list, state)
}

func edits(all ...func(*corev1.Pod)) []func(*corev1.Pod) { return all }

// own gives container "app" a restart policy of its own.
func own(policy corev1.ContainerRestartPolicy, rules ...corev1.ContainerRestartRule) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].RestartPolicy = &policy
		pod.Spec.Containers[0].RestartPolicyRules = rules
	}
}

func rule(operator corev1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) corev1.ContainerRestartRule {
	return corev1.ContainerRestartRule{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes},
	}
}

// restartAllSidekick adds a container whose failure restarts the whole pod.
func restartAllSidekick(pod *corev1.Pod) {
	all := rule("In", 42)
	all.Action = corev1.ContainerRestartRuleActionRestartAllContainers
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
		Name: "sidekick", Image: "registry.example/app:1",
		RestartPolicy:      new(corev1.ContainerRestartPolicyNever),
		RestartPolicyRules: []corev1.ContainerRestartRule{all},
	})
}

// renamed leaves the status of "app" without a container.
func renamed(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "main" }

func initContainer(policy corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Name = "main"
		container := corev1.Container{Name: "app", Image: "registry.example/app:1"}
		if policy != "" {
			container.RestartPolicy = &policy
		}
		pod.Spec.InitContainers = []corev1.Container{container}
	}
}
