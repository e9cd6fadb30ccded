// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// made is a computed condition: generation 3, no times.
func made(t v1.PodConditionType, status v1.ConditionStatus, reason, message string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: status, Reason: reason, Message: message, ObservedGeneration: 3}
}

func TestSemantics73_ContainersReady(t *testing.T) {
	list := func(l ...v1.ContainerStatus) []v1.ContainerStatus { return l }
	proxied := newPod(restartableInits("proxy"), inits("setup"))
	for _, tc := range []struct {
		name     string
		pod      *v1.Pod
		statuses []v1.ContainerStatus
		phase    v1.PodPhase
		want     v1.PodCondition
	}{
		{"no statuses", newPod(), nil, v1.PodFailed, made(v1.ContainersReady, v1.ConditionFalse, "UnknownContainerStatuses", "")},
		{"all ready", newPod(), list(running("side", ready), running("app", ready)), v1.PodRunning, made(v1.ContainersReady, v1.ConditionTrue, "", "")},
		{"unready", newPod(), list(running("side"), running("app")), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unready status: [app side]")},
		{"unknown", newPod(), list(running("side", ready)), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unknown status: [app]")},
		{"empty but known", newPod(), []v1.ContainerStatus{}, v1.PodPending,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unknown status: [app side]")},
		{"unknown before unready, init first", proxied, list(running("side"), running("proxy")), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unknown status: [app], containers with unready status: [proxy side]")},
		{"restartable init missing", proxied, list(running("app", ready), running("side", ready)), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unknown status: [proxy]")},
		{"ordinary init does not count", proxied, list(running("app", ready), running("side", ready), running("proxy", ready), running("setup")), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionTrue, "", "")},
		{"the first of two statuses", newPod(), list(running("app", ready), running("app"), running("side", ready)), v1.PodRunning,
			made(v1.ContainersReady, v1.ConditionTrue, "", "")},
		{"Succeeded", newPod(), list(terminated("app", 0), terminated("side", 0)), v1.PodSucceeded, made(v1.ContainersReady, v1.ConditionFalse, "PodCompleted", "")},
		{"Succeeded, all ready", newPod(), list(terminated("app", 0, ready), terminated("side", 0, ready)), v1.PodSucceeded, made(v1.ContainersReady, v1.ConditionFalse, "PodCompleted", "")},
		{"Succeeded, one unknown", newPod(), list(terminated("app", 0)), v1.PodSucceeded,
			made(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady", "containers with unknown status: [side], containers with unready status: [app]")},
		{"Failed, one unknown", newPod(), list(terminated("app", 0)), v1.PodFailed, made(v1.ContainersReady, v1.ConditionFalse, "PodFailed", "")},
		{"Failed, all ready", newPod(), list(running("app", ready), running("side", ready)), v1.PodFailed, made(v1.ContainersReady, v1.ConditionFalse, "PodFailed", "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, "ContainersReady", ContainersReadyCondition(tc.pod, tc.statuses, tc.phase), tc.want)
			if tc.want.Status == v1.ConditionTrue {
				return
			}
			// 74: what is not ready inside makes the pod say the same, gates or not.
			want := tc.want
			want.Type = v1.PodReady
			pod := tc.pod.DeepCopy()
			gates("example.com/gate")(pod)
			check(t, "Ready", ReadyCondition(pod, nil, tc.statuses, tc.phase), want)
		})
	}
}

func TestSemantics74_ReadinessGates(t *testing.T) {
	statuses := []v1.ContainerStatus{running("app", ready), running("side", ready)}
	const a, b = v1.PodConditionType("example.com/a"), v1.PodConditionType("example.com/b")
	missing := func(gate string) string {
		return `corresponding condition of pod readiness gate "` + gate + `" does not exist.`
	}
	for _, tc := range []struct {
		name       string
		pod        *v1.Pod
		conditions []v1.PodCondition
		want       v1.PodCondition
	}{
		{"no gates", newPod(), nil, made(v1.PodReady, v1.ConditionTrue, "", "")},
		{"all open", newPod(gates(a, b)), []v1.PodCondition{isTrueSince(b, noonTime), isTrueSince(a, noonTime)}, made(v1.PodReady, v1.ConditionTrue, "", "")},
		{"missing", newPod(gates(a)), nil, made(v1.PodReady, v1.ConditionFalse, "ReadinessGatesNotReady", missing("example.com/a"))},
		{"False", newPod(gates(a)), []v1.PodCondition{isFalseSince(a, noonTime)},
			made(v1.PodReady, v1.ConditionFalse, "ReadinessGatesNotReady", `the status of pod readiness gate "example.com/a" is not "True", but False`)},
		{"in spec order", newPod(gates(b, a)), []v1.PodCondition{cond(a, v1.ConditionUnknown, noonTime)},
			made(v1.PodReady, v1.ConditionFalse, "ReadinessGatesNotReady", missing("example.com/b")+`, the status of pod readiness gate "example.com/a" is not "True", but Unknown`)},
		{"the first of two conditions", newPod(gates(a)), []v1.PodCondition{isTrueSince(a, noonTime), isFalseSince(a, noonTime)}, made(v1.PodReady, v1.ConditionTrue, "", "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, "Ready", ReadyCondition(tc.pod, tc.conditions, statuses, v1.PodRunning), tc.want)
		})
	}
}

// Fault F17: init statuses belong to the judgement.
func TestSemantics74_NeedsReadinessReconcile(t *testing.T) {
	const gate = v1.PodConditionType("example.com/gate")
	open, up := isTrueSince(gate, noonTime), isTrueSince(v1.PodReady, noonTime)
	both := containers(running("app", ready), running("side", ready))
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		s    *v1.PodStatus
		want bool
	}{
		{"says what it should", newPod(gates(gate)), newStatus(v1.PodRunning, both, conditions(open, up)), false},
		{"status", newPod(gates(gate)), newStatus(v1.PodRunning, both, conditions(isFalseSince(gate, noonTime), up)), true},
		{"message", newPod(gates(gate)), newStatus(v1.PodRunning, both, conditions(open, saying(up, "", "old"))), true},
		{"reason alone", newPod(gates(gate)), newStatus(v1.PodRunning, both, conditions(open, saying(up, "old", ""))), false},
		{"no gates", newPod(), newStatus(v1.PodRunning, conditions(up)), false},
		{"no Ready condition", newPod(gates(gate)), newStatus(v1.PodRunning, both, conditions(open)), false},
		{"F17: restartable init container", newPod(gates(gate), restartableInits("proxy")),
			newStatus(v1.PodRunning, both, initContainers(running("proxy", ready)), conditions(open, up)), false},
		{"no statuses", newPod(gates(gate)), newStatus(v1.PodRunning, conditions(open, up)), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.pod.Status = *tc.s
			if got := NeedsReadinessReconcile(tc.pod); got != tc.want {
				t.Errorf("NeedsReadinessReconcile = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSemantics75_Initialized(t *testing.T) {
	list := func(l ...v1.ContainerStatus) []v1.ContainerStatus { return l }
	is := func(reason string) v1.PodCondition {
		return made(v1.PodInitialized, v1.ConditionTrue, reason, "")
	}
	isNot := func(message string) v1.PodCondition {
		return made(v1.PodInitialized, v1.ConditionFalse, "ContainersNotInitialized", message)
	}
	pod := newPod(inits("setup"), restartableInits("proxy"))
	was := newStatus(v1.PodRunning, conditions(isTrueSince(v1.PodInitialized, noonTime)))
	wasNot := newStatus(v1.PodRunning, conditions(isFalseSince(v1.PodInitialized, noonTime)))
	for _, tc := range []struct {
		name     string
		pod      *v1.Pod
		previous *v1.PodStatus
		statuses []v1.ContainerStatus
		phase    v1.PodPhase
		want     v1.PodCondition
	}{
		{"no init containers", newPod(), nil, nil, v1.PodPending, is("")},
		{"nothing known", pod, was, nil, v1.PodRunning, made(v1.PodInitialized, v1.ConditionFalse, "UnknownContainerStatuses", "")},
		{"done", pod, nil, list(terminated("setup", 0, ready), running("proxy", startedUp)), v1.PodPending, is("")},
		{"ordinary not ready", pod, nil, list(running("setup", startedUp), running("proxy", startedUp)), v1.PodPending, isNot("containers with incomplete status: [setup]")},
		{"restartable not started", pod, nil, list(terminated("setup", 0, ready), running("proxy", ready)), v1.PodPending, isNot("containers with incomplete status: [proxy]")},
		{"restartable stopped", pod, nil, list(terminated("setup", 0, ready), running("proxy", func(c *v1.ContainerStatus) { c.Started = new(false) })), v1.PodPending,
			isNot("containers with incomplete status: [proxy]")},
		{"unknown before incomplete", pod, wasNot, list(waiting("proxy")), v1.PodPending,
			isNot("containers with unknown status: [setup], containers with incomplete status: [proxy]")},
		{"Succeeded", pod, nil, list(terminated("setup", 0), terminated("proxy", 0)), v1.PodSucceeded, is("PodCompleted")},
		{"Succeeded, one unknown", pod, nil, list(terminated("setup", 0, ready)), v1.PodSucceeded, isNot("containers with unknown status: [proxy]")},
		{"Failed", pod, nil, list(terminated("setup", 1), waiting("proxy")), v1.PodFailed, isNot("containers with incomplete status: [setup proxy]")},
		{"a regular one runs", pod, nil, list(waiting("setup"), running("app")), v1.PodRunning, is("")},
		{"a regular one ended", pod, nil, list(waiting("setup"), terminated("side", 1)), v1.PodRunning, is("")},
		{"a regular one waits", pod, nil, list(terminated("setup", 0, ready), waiting("proxy"), waiting("app")), v1.PodPending, isNot("containers with incomplete status: [proxy]")},
		{"one outside the spec runs", pod, nil, list(terminated("setup", 0, ready), waiting("proxy"), running("ghost")), v1.PodPending, isNot("containers with incomplete status: [proxy]")},
		{"was initialized", pod, was, list(waiting("setup"), waiting("proxy")), v1.PodRunning, is("")},
		{"was not", pod, wasNot, list(terminated("setup", 0, ready), waiting("proxy")), v1.PodRunning, isNot("containers with incomplete status: [proxy]")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check(t, "Initialized", InitializedCondition(tc.pod, tc.previous, tc.statuses, tc.phase), tc.want)
		})
	}
}

func TestSemantics75_Scheduled(t *testing.T) {
	check(t, "PodScheduled", ScheduledCondition(newPod()), made(v1.PodScheduled, v1.ConditionTrue, "", ""))
}

func TestSemantics76_Sandbox(t *testing.T) {
	up, down := Sandbox{Ready: true, IP: "198.51.100.1"}, Sandbox{IP: "198.51.100.1"}
	host := newPod(func(p *v1.Pod) { p.Spec.HostNetwork = true })
	for _, tc := range []struct {
		name      string
		pod       *v1.Pod
		sandboxes []Sandbox
		// lack is the message; empty means True.
		lack string
	}{
		{"one ready", newPod(), []Sandbox{up}, ""},
		{"the newest ready", newPod(), []Sandbox{up, down}, ""},
		{"none", newPod(), nil, "the pod has no sandbox"},
		{"two ready", newPod(), []Sandbox{up, up}, "the pod has more than one ready sandbox"},
		{"none ready", newPod(), []Sandbox{down}, "the newest sandbox of the pod is not ready"},
		{"an older one ready", newPod(), []Sandbox{down, up}, "the newest sandbox of the pod is not ready"},
		{"host network unasked for", newPod(), []Sandbox{{Ready: true, HostNetwork: true, IP: "192.0.2.1"}}, "the sandbox of the pod has another network mode than its spec"},
		{"no host network", host, []Sandbox{up}, "the sandbox of the pod has another network mode than its spec"},
		{"no IP", newPod(), []Sandbox{{Ready: true}}, "the sandbox of the pod has no IP address"},
		{"host network needs no IP", host, []Sandbox{{Ready: true, HostNetwork: true}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := made(v1.PodReadyToStartContainers, v1.ConditionTrue, "", "")
			if tc.lack != "" {
				want = made(v1.PodReadyToStartContainers, v1.ConditionFalse, "PodSandboxNotReady", tc.lack)
			}
			check(t, "condition", SandboxReadyCondition(tc.pod, tc.sandboxes), want)
		})
	}
}

func TestSemantics76_AllContainersRestarting(t *testing.T) {
	pod := newPod(inits("setup"), containerPolicy("app", never, rule(restart, in, 1), rule(restartAll, in, 42)))
	during := newStatus(v1.PodRunning, conditions(isTrueSince(v1.AllContainersRestarting, noonTime)))
	calm := newStatus(v1.PodRunning, conditions(isFalseSince(v1.AllContainersRestarting, noonTime)))
	trigger, other := RuntimeContainer{Name: "app", Exited: true, ExitCode: 42}, RuntimeContainer{Name: "side"}
	for _, tc := range []struct {
		name       string
		previous   *v1.PodStatus
		containers []RuntimeContainer
		phase      v1.PodPhase
		reason     string
		want       v1.ConditionStatus
	}{
		{"nothing happened", calm, []RuntimeContainer{{Name: "app"}, other}, v1.PodRunning, "", v1.ConditionFalse},
		{"trigger", calm, []RuntimeContainer{trigger, other}, v1.PodRunning, "RestartAllContainersStarted", v1.ConditionTrue},
		{"trigger, no previous status", nil, []RuntimeContainer{trigger}, v1.PodRunning, "RestartAllContainersStarted", v1.ConditionTrue},
		{"exit code of another rule", calm, []RuntimeContainer{{Name: "app", Exited: true, ExitCode: 1}}, v1.PodRunning, "", v1.ConditionFalse},
		{"exit code of no rule", calm, []RuntimeContainer{{Name: "app", Exited: true, ExitCode: 2}}, v1.PodRunning, "", v1.ConditionFalse},
		{"not exited", calm, []RuntimeContainer{{Name: "app", ExitCode: 42}}, v1.PodRunning, "", v1.ConditionFalse},
		{"container without the rule", calm, []RuntimeContainer{{Name: "side", Exited: true, ExitCode: 42}}, v1.PodRunning, "", v1.ConditionFalse},
		{"container outside the spec", calm, []RuntimeContainer{{Name: "ghost", Exited: true, ExitCode: 42}}, v1.PodRunning, "", v1.ConditionFalse},
		{"trigger gone, another one left", during, []RuntimeContainer{other}, v1.PodRunning, "RestartAllContainersStarted", v1.ConditionTrue},
		{"trigger gone, an init container left", during, []RuntimeContainer{{Name: "setup", Exited: true}}, v1.PodRunning, "RestartAllContainersStarted", v1.ConditionTrue},
		{"all gone", during, nil, v1.PodRunning, "", v1.ConditionFalse},
		{"only one outside the spec left", during, []RuntimeContainer{{Name: "ghost"}}, v1.PodRunning, "", v1.ConditionFalse},
		{"Succeeded", during, []RuntimeContainer{trigger}, v1.PodSucceeded, "PodCompleted", v1.ConditionFalse},
		{"Failed", during, []RuntimeContainer{trigger}, v1.PodFailed, "PodFailed", v1.ConditionFalse},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := AllContainersRestartingCondition(pod, tc.previous, tc.containers, tc.phase)
			if !ok {
				t.Fatal("no condition")
			}
			if (got.Message != "") != (tc.want == v1.ConditionTrue) {
				t.Errorf("message = %q", got.Message)
			}
			got.Message = ""
			check(t, "condition", got, v1.PodCondition{Type: v1.AllContainersRestarting, Status: tc.want, Reason: tc.reason})
		})
	}
	if c, ok := AllContainersRestartingCondition(newPod(), during, []RuntimeContainer{trigger}, v1.PodRunning); ok {
		t.Errorf("a pod without the rule gets %+v", c)
	}
}

func TestConditions_HaveNoTimes(t *testing.T) {
	var zero metav1.Time
	for _, c := range []v1.PodCondition{
		ScheduledCondition(newPod()), ContainersReadyCondition(newPod(), nil, ""), ReadyCondition(newPod(), nil, nil, ""),
		InitializedCondition(newPod(), nil, nil, ""), SandboxReadyCondition(newPod(), nil),
	} {
		check(t, string(c.Type), [2]metav1.Time{c.LastProbeTime, c.LastTransitionTime}, [2]metav1.Time{zero, zero})
	}
}

func TestSemantics57_Ownership(t *testing.T) {
	for typ, want := range map[v1.PodConditionType]string{
		v1.PodScheduled: "owned", v1.PodReady: "owned", v1.PodInitialized: "owned", v1.ContainersReady: "owned",
		v1.PodResizeInProgress: "owned", v1.PodResizePending: "owned",
		v1.PodReadyToStartContainers: "owned", v1.AllContainersRestarting: "owned",
		v1.DisruptionTarget: "shared", "example.com/gate": "foreign", "": "foreign",
	} {
		got := "foreign"
		switch {
		case OwnedCondition(typ) && SharedCondition(typ):
			got = "both"
		case OwnedCondition(typ):
			got = "owned"
		case SharedCondition(typ):
			got = "shared"
		}
		check(t, string(typ), got, want)
	}
}

func TestSemantics4_Source(t *testing.T) {
	for _, tc := range []struct {
		name           string
		pod            *v1.Pod
		static, mirror bool
	}{
		{"no annotation", newPod(), false, false},
		{"API", newPod(annotated("kubernetes.io/config.source", "api")), false, false},
		{"file", newPod(annotated("kubernetes.io/config.source", "file")), true, false},
		{"HTTP", newPod(annotated("kubernetes.io/config.source", "http")), true, false},
		{"mirror", newPod(annotated("kubernetes.io/config.mirror", "hash")), false, true},
		{"mirror as the kubelet sees it", newPod(annotated("kubernetes.io/config.mirror", "hash"), annotated("kubernetes.io/config.source", "api")), false, true},
	} {
		if IsStatic(tc.pod) != tc.static || IsMirror(tc.pod) != tc.mirror {
			t.Errorf("%s: static %v, mirror %v; want %v, %v", tc.name, IsStatic(tc.pod), IsMirror(tc.pod), tc.static, tc.mirror)
		}
	}
}

func TestSemantics60_FindCondition(t *testing.T) {
	s := newStatus("", conditions(isTrueSince("a", at(1, 0, 0)), isTrueSince("b", at(2, 0, 0)), isFalseSince("b", at(3, 0, 0))))
	i, c := FindCondition(s, "b")
	if i != 1 || c != &s.Conditions[1] {
		t.Errorf("FindCondition = %d, %v; want the first of two", i, c)
	}
	if i, c := FindCondition(s, "x"); i != -1 || c != nil {
		t.Errorf("FindCondition(x) = %d, %v", i, c)
	}
	if i, c := FindCondition(nil, "x"); i != -1 || c != nil {
		t.Errorf("FindCondition of nil = %d, %v", i, c)
	}
}
