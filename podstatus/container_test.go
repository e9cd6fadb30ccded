// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

const (
	appID  = "containerd://app"
	sideID = "containerd://side"
)

// C08: container readiness moves the pod conditions in the same event.
func TestC08_ReadinessMovesTheConditions(t *testing.T) {
	stored := newStatus(v1.PodRunning, started(at(9, 0, 0)),
		containers(running("app", ready), running("side")),
		conditions(
			isTrueSince(v1.PodScheduled, at(9, 0, 0)),
			saying(isFalseSince(v1.PodReady, at(9, 1, 0)), ReasonContainersNotReady, "containers with unready status: [side]"),
			isTrueSince("example.com/gate", at(9, 0, 0)),
			saying(isFalseSince(v1.ContainersReady, at(9, 1, 0)), ReasonContainersNotReady, "containers with unready status: [side]")))
	before := stored.DeepCopy()

	got, changed, err := SetReady(newPod(), stored, sideID, true, noon.Add(time.Millisecond))
	if err != nil || !changed {
		t.Fatalf("SetReady = %v, %v; want a change", changed, err)
	}
	generation := func(c v1.PodCondition) v1.PodCondition { c.ObservedGeneration = 3; return c }
	want := newStatus(v1.PodRunning, started(at(9, 0, 0)),
		containers(running("app", ready), running("side", ready)),
		conditions(
			isTrueSince(v1.PodScheduled, at(9, 0, 0)),
			generation(isTrueSince(v1.PodReady, at(12, 0, 0))),
			isTrueSince("example.com/gate", at(9, 0, 0)),
			generation(isTrueSince(v1.ContainersReady, at(12, 0, 0)))))
	check(t, "status", got, want)
	check(t, "input", stored, before)

	if again, changed, err := SetReady(newPod(), got, sideID, true, noon); again != nil || changed || err != nil {
		t.Errorf("the same again = %v, %v, %v; want nothing", again, changed, err)
	}
}

func TestSemantics19_MissingConditionsAreAppended(t *testing.T) {
	got, _, err := SetReady(newPod(), newStatus(v1.PodRunning, containers(running("app", ready), running("side", ready))), appID, false, noon)
	if err != nil {
		t.Fatal(err)
	}
	want := func(typ v1.PodConditionType) v1.PodCondition {
		c := saying(isFalseSince(typ, at(12, 0, 0)), ReasonContainersNotReady, "containers with unready status: [app]")
		c.ObservedGeneration = 3
		return c
	}
	check(t, "conditions", got.Conditions, []v1.PodCondition{want(v1.PodReady), want(v1.ContainersReady)})
}

func TestSemantics19_GatesPhaseAndInitContainers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pod    *v1.Pod
		status *v1.PodStatus
		ready  v1.ConditionStatus
		both   v1.ConditionStatus
	}{
		{"gate open", newPod(gates("example.com/gate")),
			newStatus(v1.PodRunning, containers(running("app"), running("side", ready)), conditions(isTrueSince("example.com/gate", at(9, 0, 0)))), v1.ConditionTrue, v1.ConditionTrue},
		{"gate shut", newPod(gates("example.com/gate")),
			newStatus(v1.PodRunning, containers(running("app"), running("side", ready))), v1.ConditionFalse, v1.ConditionTrue},
		{"stored phase", newPod(),
			newStatus(v1.PodFailed, containers(running("app"), running("side", ready))), v1.ConditionFalse, v1.ConditionFalse},
		{"restartable init ready", newPod(restartableInits("proxy")),
			newStatus(v1.PodRunning, containers(running("app"), running("side", ready)), initContainers(running("proxy", ready))), v1.ConditionTrue, v1.ConditionTrue},
		{"restartable init not ready", newPod(restartableInits("proxy")),
			newStatus(v1.PodRunning, containers(running("app"), running("side", ready)), initContainers(running("proxy"))), v1.ConditionFalse, v1.ConditionFalse},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed, err := SetReady(tc.pod, tc.status, appID, true, noon)
			if err != nil || !changed {
				t.Fatalf("SetReady = %v, %v; want a change", changed, err)
			}
			_, podReady := FindCondition(got, v1.PodReady)
			_, containersReady := FindCondition(got, v1.ContainersReady)
			check(t, "Ready", podReady.Status, tc.ready)
			check(t, "ContainersReady", containersReady.Status, tc.both)
		})
	}
}

func TestSemantics17_Lookup(t *testing.T) {
	same := func(c *v1.ContainerStatus) { c.ContainerID = appID }
	noID := func(c *v1.ContainerStatus) { c.ContainerID = "" }
	s := newStatus(v1.PodRunning,
		initContainers(running("init"), running("twin", same)),
		containers(waiting("new", noID), running("app")),
		ephemerals(running("debug")))
	pod := newPod(inits("init", "twin"))

	got, _, err := SetReady(pod, s, appID, true, noon)
	if err != nil {
		t.Fatal(err)
	}
	if !got.ContainerStatuses[1].Ready || got.InitContainerStatuses[1].Ready {
		t.Error("an ID in both lists must mean the regular container")
	}
	got, _, err = SetStarted(s, "containerd://init", true)
	if err != nil {
		t.Fatal(err)
	}
	if c := got.InitContainerStatuses[0]; c.Started == nil || !*c.Started {
		t.Error("the init container was not found")
	}
	for _, id := range []string{"containerd://debug", "containerd://gone", "app", ""} {
		if s, changed, err := SetReady(pod, s, id, true, noon); s != nil || changed || !errors.Is(err, ErrContainerNotFound) {
			t.Errorf("SetReady(%q) = %v, %v, %v; want ErrContainerNotFound", id, s, changed, err)
		}
		if s, changed, err := SetStarted(s, id, true); s != nil || changed || !errors.Is(err, ErrContainerNotFound) {
			t.Errorf("SetStarted(%q) = %v, %v, %v; want ErrContainerNotFound", id, s, changed, err)
		}
	}
	if _, _, err := SetReady(pod, nil, appID, true, noon); !errors.Is(err, ErrContainerNotFound) {
		t.Errorf("SetReady without a status: %v", err)
	}
}

func TestSemantics20_Startup(t *testing.T) {
	up, down := true, false
	for _, tc := range []struct {
		stored  *bool
		started bool
		changed bool
	}{
		{nil, true, true}, {nil, false, true},
		{&up, true, false}, {&up, false, true},
		{&down, true, true}, {&down, false, false},
	} {
		s := newStatus(v1.PodRunning, containers(running("app"), running("side")), conditions(isFalseSince(v1.PodInitialized, at(9, 0, 0))))
		s.ContainerStatuses[0].Started = tc.stored
		got, changed, err := SetStarted(s, appID, tc.started)
		if err != nil || changed != tc.changed {
			t.Errorf("stored %v, set %v: changed = %v, %v; want %v", tc.stored, tc.started, changed, err, tc.changed)
		}
		if !changed {
			if got != nil {
				t.Errorf("unchanged, but got %v", got)
			}
			continue
		}
		want := s.DeepCopy()
		want.ContainerStatuses[0].Started = &tc.started
		check(t, "status", got, want)
	}
}
