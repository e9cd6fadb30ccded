// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// unknownEnd is the rule-40 state of a container.
func unknownEnd(name string) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: 137, Reason: "ContainerStatusUnknown",
		Message:     "no final state of this container could be found when its pod was terminated",
		ContainerID: "containerd://" + name,
	}}
}

func withStatus(s *v1.PodStatus) podOption { return func(p *v1.Pod) { p.Status = *s } }

func TestSemantics39_Base(t *testing.T) {
	pod := newPod(withStatus(newStatus(v1.PodRunning, because("API", ""))))
	check(t, "stored", Terminate(pod, newStatus(v1.PodRunning, because("Stored", "")), false, noon), newStatus(v1.PodFailed, because("Stored", "")))
	check(t, "not stored", Terminate(pod, nil, false, noon), newStatus(v1.PodFailed, because("API", "")))
}

func TestSemantics40_OpenContainersEnd(t *testing.T) {
	stored := newStatus(v1.PodRunning,
		containers(running("app", ready, startedUp), waiting("side"), blank("odd"), terminated("done", 1)))
	got := Terminate(newPod(), stored, false, noon)
	app := running("app", ready, startedUp)
	app.State = unknownEnd("app")
	side, odd := waiting("side"), blank("odd")
	side.State, odd.State = unknownEnd("side"), unknownEnd("odd")
	check(t, "status", got, newStatus(v1.PodFailed, containers(app, side, odd, terminated("done", 1))))
}

func TestSemantics41_Initialized(t *testing.T) {
	ordinary := newPod(inits("first", "second"))
	restartable := newPod(restartableInits("proxy"))
	notUp := func(c *v1.ContainerStatus) { c.Started = new(false) }
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		s    *v1.PodStatus
		want bool
	}{
		{"no init containers", newPod(), newStatus(""), true},
		{"nothing known", ordinary, newStatus(""), false},
		{"regular running", ordinary, newStatus("", containers(waiting("app"), running("side"))), true},
		{"regular terminated", ordinary, newStatus("", containers(terminated("app", 1))), true},
		{"regular in no state", ordinary, newStatus("", containers(blank("app"))), true},
		{"regular ran before", ordinary, newStatus("", containers(waiting("app", after(1)))), true},
		{"regular waits", ordinary, newStatus("", containers(waiting("app"))), false},
		{"last init succeeded", ordinary, newStatus("", initContainers(terminated("first", 1), terminated("second", 0))), true},
		{"last init succeeded before", ordinary, newStatus("", initContainers(waiting("second", after(0)))), true},
		{"last init failed", ordinary, newStatus("", initContainers(terminated("first", 0), terminated("second", 1))), false},
		{"last init failed before", ordinary, newStatus("", initContainers(waiting("second", after(1)))), false},
		{"last listed one counts, not the last of the spec", ordinary, newStatus("", initContainers(terminated("first", 0))), true},
		{"ordinary init runs", ordinary, newStatus("", initContainers(running("second", startedUp))), false},
		{"restartable up", restartable, newStatus("", initContainers(running("proxy", startedUp))), true},
		{"restartable not up", restartable, newStatus("", initContainers(running("proxy", notUp))), false},
		{"restartable, unknown whether up", restartable, newStatus("", initContainers(running("proxy"))), false},
		{"restartable up once, waits", restartable, newStatus("", initContainers(waiting("proxy", startedUp))), false},
		{"restartable ended with 0", restartable, newStatus("", initContainers(terminated("proxy", 0))), false},
		{"not in the spec", ordinary, newStatus("", initContainers(terminated("ghost", 0))), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := initialized(tc.pod, tc.s); got != tc.want {
				t.Errorf("initialized = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSemantics42_StoredFirstThenTheAPI(t *testing.T) {
	waits := newStatus(v1.PodPending, containers(waiting("app")), initContainers(waiting("init")))
	done := newStatus(v1.PodPending, containers(waiting("app")), initContainers(terminated("init", 0)))
	for _, tc := range []struct {
		name        string
		stored, api *v1.PodStatus
		want        bool
	}{
		{"neither", waits, waits, false},
		{"stored", done, waits, true},
		{"API", waits, done, true},
		{"nothing stored", nil, done, true},
		{"nothing stored, not done", nil, waits, false},
	} {
		got := Terminate(newPod(inits("init"), withStatus(tc.api)), tc.stored, false, noon)
		if ended := got.ContainerStatuses[0].State.Terminated != nil; ended != tc.want {
			t.Errorf("%s: app ended = %v, want %v", tc.name, ended, tc.want)
		}
	}
}

func TestSemantics43_InitPrefix(t *testing.T) {
	pod := newPod(inits("a", "b", "c"))
	for _, tc := range []struct {
		name string
		in   []v1.ContainerStatus
		// want names the containers that have been ended by Terminate.
		want string
	}{
		{"none listed", nil, ""},
		{"all wait: the first", []v1.ContainerStatus{waiting("a"), waiting("b"), waiting("c")}, "a"},
		{"the second runs", []v1.ContainerStatus{terminated("a", 0), running("b"), waiting("c")}, "b"},
		{"the second ran before", []v1.ContainerStatus{waiting("a"), waiting("b", after(1)), waiting("c")}, "a b"},
		{"the last runs", []v1.ContainerStatus{waiting("a"), running("b"), running("c")}, "a b c"},
		{"one ended, the rest waits", []v1.ContainerStatus{terminated("a", 1), waiting("b"), waiting("c")}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Terminate(pod, newStatus(v1.PodPending, initContainers(tc.in...)), false, noon)
			var closed []v1.ContainerStatus
			for i, c := range got.InitContainerStatuses {
				if c.State.Terminated != nil && tc.in[i].State.Terminated == nil {
					closed = append(closed, c)
				}
			}
			check(t, "ended", names(closed), tc.want)
		})
	}
}

func TestSemantics44_EphemeralIsUntouched(t *testing.T) {
	got := Terminate(newPod(), newStatus(v1.PodRunning, ephemerals(running("debug"), waiting("shell"))), false, noon)
	check(t, "ephemeral", got.EphemeralContainerStatuses, []v1.ContainerStatus{running("debug"), waiting("shell")})
}

func TestSemantics45_Phase(t *testing.T) {
	for phase, want := range map[v1.PodPhase]v1.PodPhase{
		v1.PodSucceeded: v1.PodSucceeded, v1.PodFailed: v1.PodFailed, v1.PodPending: v1.PodFailed,
		v1.PodRunning: v1.PodFailed, v1.PodUnknown: v1.PodFailed, "": v1.PodFailed,
	} {
		check(t, string(phase), Terminate(newPod(), newStatus(phase), false, noon).Phase, want)
		check(t, "static "+string(phase), Terminate(newPod(), newStatus(phase), true, noon).Phase, phase)
	}
}

func TestSemantics46_KnownTermination(t *testing.T) {
	known := ended(3)
	known.Terminated.Signal, known.Terminated.ContainerID = 9, "containerd://earlier"
	with := func(s v1.ContainerState) containerOption {
		return func(c *v1.ContainerStatus) { c.LastTerminationState = *s.DeepCopy() }
	}
	noID := *known.DeepCopy()
	noID.Terminated.ContainerID = ""
	filled := *known.DeepCopy()
	filled.Terminated.ContainerID = "containerd://app"
	for _, tc := range []struct {
		name string
		in   v1.ContainerStatus
		want v1.ContainerState
	}{
		{"waiting", waiting("app", with(known)), known},
		{"no state", blank("app", with(known)), known},
		{"ID missing there", waiting("app", with(noID)), filled},
		{"running: the end of this life is unknown", running("app", with(known)), unknownEnd("app")},
		{"waiting, never ran", waiting("app"), unknownEnd("app")},
		{"terminated", terminated("app", 7, with(known)), ended(7)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStatus(v1.PodRunning, containers(tc.in), initContainers(*tc.in.DeepCopy()))
			got := Terminate(newPod(), s, false, noon)
			check(t, "regular", got.ContainerStatuses[0].State, tc.want)
			check(t, "init", got.InitContainerStatuses[0].State, tc.want)
			check(t, "lastState", got.ContainerStatuses[0].LastTerminationState, tc.in.LastTerminationState)
		})
	}
}

// C04: TerminatePod ignores the stale status inside the pod object.
func TestC04_StalePodObject(t *testing.T) {
	stored := newStatus(v1.PodFailed, because("DeadlineExceeded", ""), containers(running("app")), started(at(9, 0, 0)))
	pod := newPod(withStatus(newStatus(v1.PodRunning, containers(running("app")))))
	r := ComputeTerminate(Update{Pod: pod, Status: Terminate(pod, stored, false, noon), Previous: stored, Cached: true, Now: noon})
	check(t, "phase", r.Status.Phase, v1.PodFailed)
	check(t, "reason", r.Status.Reason, "DeadlineExceeded")
	check(t, "app", r.Status.ContainerStatuses[0].State, unknownEnd("app"))
}

// C05: TerminatePod closes every container that was left open.
func TestC05_NoContainerStaysOpen(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever))
	stored := newStatus(v1.PodRunning, containers(terminated("app", 1), running("side")), started(at(9, 0, 0)))
	r := ComputeTerminate(Update{Pod: pod, Status: Terminate(pod, stored, false, noon), Previous: stored, Cached: true, Now: noon})
	check(t, "app", r.Status.ContainerStatuses[0].State, ended(1))
	check(t, "side", r.Status.ContainerStatuses[1].State, unknownEnd("side"))
	check(t, "phase", r.Status.Phase, v1.PodFailed)
	check(t, "newly terminated", r.Terminated, []Termination{{Container: "side", Kind: KindContainer, ExitCode: 137, Reason: ReasonStatusUnknown}})
}

// C37: TerminatePod again and again.
func TestC37_TerminateAgainIsUnchanged(t *testing.T) {
	pod := newPod(inits("init"))
	stored := newStatus(v1.PodRunning, containers(running("app"), waiting("side", after(2))), initContainers(waiting("init")), started(at(9, 0, 0)))
	first := ComputeTerminate(Update{Pod: pod, Status: Terminate(pod, stored, false, noon), Previous: stored, Cached: true, Now: noon})
	again := ComputeTerminate(Update{Pod: pod, Status: Terminate(pod, first.Status, false, noon), Previous: first.Status, Cached: true, Now: noon})
	if again.Changed || again.Terminated != nil {
		t.Errorf("the second terminate is a change: %+v", again)
	}
	check(t, "status", again.Status, first.Status)
}

// A mirror pod may know of an end that the status at hand does not.
func TestSemantics48_TerminateIsNeverRefused(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever), inits("init", "later"),
		withStatus(newStatus(v1.PodRunning,
			containers(running("app"), running("side")),
			initContainers(waiting("init"), waiting("later"), running("ghost")),
			ephemerals(running("debug"), running("shell")))))
	previous := newStatus(v1.PodRunning,
		containers(terminated("app", 3), running("side")),
		initContainers(terminated("later", 4), running("ghost")),
		ephemerals(terminated("debug", 5)))
	status := Terminate(pod, nil, false, noon)
	status.InitContainerStatuses[1] = waiting("later")

	if _, err := Compute(Update{Pod: pod, Status: status, Previous: previous, Now: noon}); err == nil {
		t.Fatal("Compute accepts it: the test shows nothing")
	}
	got := ComputeTerminate(Update{Pod: pod, Status: status, Previous: previous, Now: noon}).Status
	check(t, "phase", got.Phase, v1.PodFailed)
	check(t, "app", got.ContainerStatuses[0].State, unknownEnd("app"))
	check(t, "side", got.ContainerStatuses[1].State, unknownEnd("side"))
	check(t, "init: new end", got.InitContainerStatuses[0].State, unknownEnd("init"))
	check(t, "later: the old end stays", got.InitContainerStatuses[1].State, ended(4))
	check(t, "ghost: the old state stays", got.InitContainerStatuses[2].State, running("ghost").State)
	check(t, "debug: the old end stays", got.EphemeralContainerStatuses[0].State, ended(5))
	check(t, "shell", got.EphemeralContainerStatuses[1].State, running("shell").State)

	got.ContainerStatuses[0].State.Terminated.ExitCode = 99
	got.InitContainerStatuses[1].State.Terminated.ExitCode = 99
	check(t, "previous after edits of the result", previous.InitContainerStatuses[0].State, ended(4))
}

func TestSemantics48_TerminalPhaseStays(t *testing.T) {
	stored := newStatus(v1.PodSucceeded, because("Done", "all done"), started(at(9, 0, 0)))
	u := Update{Pod: newPod(), Status: newStatus(v1.PodFailed, because("x", "y")), Previous: stored, Cached: true, Now: noon}
	got := ComputeTerminate(u)
	check(t, "status", got.Status, stored)
	if got.Changed {
		t.Error("changed")
	}
	u.Static = true
	check(t, "static", ComputeTerminate(u).Status.Phase, v1.PodFailed)
}
