// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

const (
	restart    = v1.ContainerRestartRuleActionRestart
	restartAll = v1.ContainerRestartRuleActionRestartAllContainers
	in         = v1.ContainerRestartRuleOnExitCodesOpIn
	notIn      = v1.ContainerRestartRuleOnExitCodesOpNotIn

	always    = v1.ContainerRestartPolicyAlways
	onFailure = v1.ContainerRestartPolicyOnFailure
	never     = v1.ContainerRestartPolicyNever
)

// refused runs the check and returns the container it names, or nothing.
func refused(t *testing.T, pod *v1.Pod, previous, next *v1.PodStatus) string {
	t.Helper()
	err := CheckTransition(pod, previous, next)
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*TransitionError](err)
	if !ok || !errors.Is(err, ErrIllegalTransition) {
		t.Fatalf("error %v is no TransitionError with ErrIllegalTransition", err)
	}
	if e.UID != pod.UID || e.Reason == "" || !strings.Contains(err.Error(), e.Container) {
		t.Errorf("error %+v lacks UID, reason or container", e)
	}
	return e.Container
}

func TestSemantics67_TerminatedStaysTerminated(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever), inits("init"))
	for _, tc := range []struct {
		name           string
		previous, next *v1.PodStatus
		want           string
	}{
		{"to running", newStatus("", containers(terminated("app", 0))), newStatus("", containers(running("app"))), "app"},
		{"to waiting", newStatus("", containers(terminated("app", 1))), newStatus("", containers(waiting("app"))), "app"},
		{"to no state", newStatus("", containers(terminated("app", 1))), newStatus("", containers(blank("app"))), "app"},
		{"stays", newStatus("", containers(terminated("app", 1))), newStatus("", containers(terminated("app", 2))), ""},
		{"absent", newStatus("", containers(terminated("app", 1))), newStatus(""), ""},
		{"ends", newStatus("", containers(running("app"))), newStatus("", containers(terminated("app", 1))), ""},
		{"running to waiting", newStatus("", containers(running("app"))), newStatus("", containers(waiting("app"))), ""},
		{"lastState is not looked at", newStatus("", containers(running("app", after(1)))), newStatus("", containers(running("app"))), ""},
		{"matched by name", newStatus("", containers(terminated("app", 1), running("side"))), newStatus("", containers(running("side"), terminated("app", 1))), ""},
		{"second container", newStatus("", containers(running("app"), terminated("side", 1))), newStatus("", containers(running("app"), running("side"))), "side"},
		{"init", newStatus("", initContainers(terminated("init", 0))), newStatus("", initContainers(running("init"))), "init"},
		{"other list", newStatus("", containers(terminated("app", 0))), newStatus("", initContainers(running("app"))), ""},
		{"one of two with the name", newStatus("", containers(terminated("app", 0))), newStatus("", containers(terminated("app", 0), running("app"))), "app"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := refused(t, pod, tc.previous, tc.next); got != tc.want {
				t.Errorf("refused container = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSemantics68_RestartAllAllowsEverything(t *testing.T) {
	previous := newStatus("", containers(terminated("app", 0), terminated("side", 1)), initContainers(terminated("init", 0), running("ghost")))
	next := newStatus("", containers(waiting("app"), waiting("side")), initContainers(waiting("init")))
	pod := newPod(policy(v1.RestartPolicyNever), inits("init"))
	if refused(t, pod, previous, next) == "" {
		t.Fatal("without a rule the update is legal: the test shows nothing")
	}
	for _, name := range []string{"side", "init"} {
		with := newPod(policy(v1.RestartPolicyNever), inits("init"), containerPolicy(name, never, rule(restart, in, 1), rule(restartAll, in, 42)))
		if got := refused(t, with, previous, next); got != "" {
			t.Errorf("rule at %s: refused %s, want none", name, got)
		}
	}
	with := newPod(policy(v1.RestartPolicyNever), containerPolicy("app", never, rule(restartAll, in, 42)))
	if got := refused(t, with, newStatus("", ephemerals(terminated("debug", 0))), newStatus("", ephemerals(running("debug")))); got != "debug" {
		t.Errorf("ephemeral container: refused %q, want debug", got)
	}
}

func TestSemantics69_MayRestart(t *testing.T) {
	const podAlways, podOnFailure, podNever = v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	own := func(p v1.ContainerRestartPolicy, rules ...v1.ContainerRestartRule) podOption {
		return containerPolicy("app", p, rules...)
	}
	none := func(*v1.Pod) {}
	noCodes := v1.ContainerRestartRule{Action: restart}
	for _, tc := range []struct {
		name      string
		pod       v1.RestartPolicy
		container podOption
		exitCode  int32
		want      bool
	}{
		{"pod Always, 0", podAlways, none, 0, true},
		{"pod Always, 1", podAlways, none, 1, true},
		{"pod OnFailure, 0", podOnFailure, none, 0, false},
		{"pod OnFailure, 1", podOnFailure, none, 1, true},
		{"pod Never, 0", podNever, none, 0, false},
		{"pod Never, 1", podNever, none, 1, false},
		{"pod unset", "", none, 0, true},

		{"own Always under Never", podNever, own(always), 0, true},
		{"own OnFailure under Never, 0", podNever, own(onFailure), 0, false},
		{"own OnFailure under Never, 1", podNever, own(onFailure), 1, true},
		{"70: own Never under Always, 0", podAlways, own(never), 0, false},
		{"70: own Never under Always, 1", podAlways, own(never), 1, false},
		{"70: own OnFailure under Always, 0", podAlways, own(onFailure), 0, false},
		{"70: own Never under OnFailure, 1", podOnFailure, own(never), 1, false},
		{"unknown own policy leaves it to the pod", podNever, own("Sometimes"), 1, false},
		{"unknown own policy leaves it to the pod, Always", podAlways, own("Sometimes"), 1, true},

		{"rule In", podNever, own(never, rule(restart, in, 41, 42)), 42, true},
		{"rule In, other code", podNever, own(never, rule(restart, in, 41, 42)), 43, false},
		{"rule NotIn", podNever, own(never, rule(restart, notIn, 41, 42)), 43, true},
		{"rule NotIn, listed code", podNever, own(never, rule(restart, notIn, 41, 42)), 42, false},
		{"second rule", podNever, own(never, rule(restart, in, 1), rule(restart, in, 2)), 2, true},
		{"no rule matches, own policy", podNever, own(onFailure, rule(restart, in, 7)), 8, true},
		{"rule without codes never matches", podNever, own(never, noCodes), 0, false},
		{"unknown operator never matches", podNever, own(never, rule(restart, "Like", 0)), 0, false},
		{"first match with an unknown action: policy", podNever, own(never, rule("Explode", in, 1), rule(restart, in, 1)), 1, false},
		{"rules without own policy are not looked at", podNever, func(p *v1.Pod) {
			p.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{rule(restart, in, 1)}
		}, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := newPod(policy(tc.pod), tc.container)
			got := refused(t, pod, newStatus("", containers(terminated("app", tc.exitCode))), newStatus("", containers(waiting("app")))) == ""
			if got != tc.want {
				t.Errorf("restart allowed = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSemantics69_RestartAllRuleMatches(t *testing.T) {
	pod := newPod(containerPolicy("app", never, rule(restartAll, in, 9)))
	old := terminated("app", 9)
	if !mayRestart(pod, &pod.Spec.Containers[0], &old) {
		t.Error("a matching restart-all rule does not restart its own container")
	}
}

func TestSemantics69_RestartableInit(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever), restartableInits("proxy"))
	if got := refused(t, pod, newStatus("", initContainers(terminated("proxy", 0))), newStatus("", initContainers(running("proxy")))); got != "" {
		t.Errorf("refused %q, want none", got)
	}
}

func TestSemantics71_EphemeralNeverRestarts(t *testing.T) {
	for _, p := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, ""} {
		pod := newPod(policy(p))
		previous := newStatus("", ephemerals(running("other"), terminated("debug", 1)))
		if got := refused(t, pod, previous, newStatus("", ephemerals(waiting("debug")))); got != "debug" {
			t.Errorf("policy %q: refused %q, want debug", p, got)
		}
		if got := refused(t, pod, previous, newStatus("", ephemerals(terminated("debug", 1)))); got != "" {
			t.Errorf("policy %q: refused %q though it stays terminated", p, got)
		}
	}
}

func TestSemantics72_InitMismatch(t *testing.T) {
	pod := newPod(inits("init"))
	for name, previous := range map[string]*v1.PodStatus{
		"running":    newStatus("", initContainers(running("ghost"))),
		"terminated": newStatus("", initContainers(terminated("init", 0), terminated("ghost", 0))),
	} {
		for _, next := range []*v1.PodStatus{newStatus(""), previous} {
			if got := refused(t, pod, previous, next); got != "ghost" {
				t.Errorf("%s: refused %q, want ghost", name, got)
			}
		}
	}
	if got := refused(t, pod, newStatus(""), newStatus("", initContainers(running("ghost")))); got != "" {
		t.Errorf("a new mismatch: refused %q; only the previous status is looked at", got)
	}
}

// The API server lets a regular container leave terminated only if its spec
// container may restart; without one it never does.
func TestSemantics70_RegularWithoutSpec(t *testing.T) {
	previous, next := newStatus("", containers(terminated("gone", 1))), newStatus("", containers(running("gone")))
	if got := refused(t, newPod(), previous, next); got != "gone" {
		t.Errorf("refused %q, want gone", got)
	}
	if got := refused(t, newPod(), newStatus("", containers(running("gone"))), newStatus("", containers(waiting("gone")))); got != "" {
		t.Errorf("refused %q though it was not terminated", got)
	}
}

func TestCheckTransition_PodWithoutSpec(t *testing.T) {
	previous := newStatus("", containers(terminated("app", 1)), initContainers(terminated("init", 1)))
	next := newStatus("", containers(running("app")), initContainers(running("init")))
	for p, want := range map[v1.RestartPolicy]string{v1.RestartPolicyAlways: "", v1.RestartPolicyNever: "app"} {
		pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: p}}
		if got := refused(t, pod, previous, next); got != want {
			t.Errorf("policy %s: refused %q, want %q", p, got, want)
		}
	}
}

func TestTransitionError_Text(t *testing.T) {
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		prev v1.ContainerStatus
		next []v1.ContainerStatus
		want string
	}{
		{"pod policy", newPod(policy(v1.RestartPolicyNever)), terminated("app", 128), []v1.ContainerStatus{waiting("app")},
			`illegal status transition: pod uid-a: container "app" may not go from "terminated" to "waiting": restart policy "Never" of the pod does not start it again after exit code 128`},
		{"own policy", newPod(containerPolicy("app", onFailure)), terminated("app", 0), []v1.ContainerStatus{terminated("app", 0), running("app")},
			`illegal status transition: pod uid-a: container "app" may not go from "terminated" to "running": restart policy "OnFailure" of the container does not start it again after exit code 0`},
		{"not in the spec", newPod(), terminated("gone", 0), []v1.ContainerStatus{running("gone")},
			`illegal status transition: pod uid-a: container "gone" may not go from "terminated" to "running": the pod spec has no such container`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckTransition(tc.pod, newStatus("", containers(tc.prev)), newStatus("", containers(tc.next...)))
			if err == nil {
				t.Fatal("no error")
			}
			check(t, "text", err.Error(), tc.want)
		})
	}
	err := CheckTransition(newPod(inits("init")), newStatus("", initContainers(running("ghost"))), newStatus(""))
	e, _ := errors.AsType[*TransitionError](err)
	check(t, "error", e, &TransitionError{UID: "uid-a", Container: "ghost", From: "running", To: "absent", Reason: "the pod spec has no such container"})
}
