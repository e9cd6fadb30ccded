// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSemantics13_SameStatusIsUnchanged(t *testing.T) {
	pod := newPod()
	first := mustCompute(t, Update{Pod: pod, Status: fullStatus(), Now: noon})
	if !first.Changed {
		t.Error("the first status is no change")
	}
	u := Update{Pod: pod, Status: fullStatus(), Previous: first.Status, Cached: true, Now: noon.Add(time.Hour)}
	if r := mustCompute(t, u); r.Changed {
		t.Error("the same status is a change")
	}
	if !Unchanged(u) {
		t.Error("Unchanged = false")
	}
	u.Cached = false
	if r := mustCompute(t, u); !r.Changed {
		t.Error("the same status as the API has, not stored yet, is no change")
	}
	if Unchanged(u) {
		t.Error("Unchanged = true for what is not stored yet")
	}
}

func TestSemantics15_TerminalPhaseIsFinal(t *testing.T) {
	phases := []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown, ""}
	for _, from := range phases {
		for _, to := range phases {
			u := Update{Pod: newPod(), Status: newStatus(to), Previous: newStatus(from), Cached: true, Now: noon}
			_, err := Compute(u)
			want := Terminal(from) && to != from
			if got := errors.Is(err, ErrIllegalTransition); got != want {
				t.Errorf("%q to %q: refused = %v, want %v", from, to, got, want)
			}
			if want {
				e, _ := errors.AsType[*TransitionError](err)
				if e.Container != "" || e.From != string(from) || e.To != string(to) || e.UID != "uid-a" {
					t.Errorf("error = %+v", e)
				}
				if text := err.Error(); !strings.Contains(text, "phase may not go from") {
					t.Errorf("text = %q", text)
				}
			}
			for what, lenient := range map[string]func(*Update){
				"static":     func(u *Update) { u.Static = true },
				"not stored": func(u *Update) { u.Cached = false },
			} {
				free := u
				lenient(&free)
				if _, err := Compute(free); err != nil {
					t.Errorf("%s, %q to %q: %v", what, from, to, err)
				}
			}
		}
	}
}

// C01: Failed never becomes Succeeded.
func TestC01_FailedNeverBecomesSucceeded(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever))
	stored := mustCompute(t, Update{Pod: pod, Status: newStatus(v1.PodFailed, containers(terminated("app", 1))), Now: noon}).Status
	for _, next := range []*v1.PodStatus{
		newStatus(v1.PodSucceeded, containers(terminated("app", 0))),
		newStatus(v1.PodRunning, containers(running("app"))),
	} {
		if r, err := Compute(Update{Pod: pod, Status: next, Previous: stored, Cached: true, Now: noon}); !errors.Is(err, ErrIllegalTransition) || r.Status != nil {
			t.Errorf("phase %s: %+v, %v; want nothing and ErrIllegalTransition", next.Phase, r, err)
		}
	}
	detail := newStatus(v1.PodFailed, containers(terminated("app", 1)), because("", "more detail"))
	if r := mustCompute(t, Update{Pod: pod, Status: detail, Previous: stored, Cached: true, Now: noon}); !r.Changed {
		t.Error("a new message in a terminal phase is no change")
	}
}

// C03: terminated container cannot come back under restartPolicy Never.
func TestC03_TerminatedContainerUnderNever(t *testing.T) {
	stored := newStatus(v1.PodRunning, containers(terminated("app", 128)))
	next := newStatus(v1.PodRunning, containers(waiting("app")))
	_, err := Compute(Update{Pod: newPod(policy(v1.RestartPolicyNever)), Status: next, Previous: stored, Cached: true, Now: noon})
	if e, ok := errors.AsType[*TransitionError](err); !ok || e.Container != "app" {
		t.Errorf("error = %v, want one that names app", err)
	}
	if _, err := Compute(Update{Pod: newPod(), Status: next, Previous: stored, Cached: true, Now: noon}); err != nil {
		t.Errorf("the same under Always: %v", err)
	}
}

func TestSemantics50_TransitionTimes(t *testing.T) {
	old, given, now := at(10, 0, 0), at(11, 0, 0), at(12, 0, 0)
	stamped := []v1.PodConditionType{
		v1.ContainersReady, v1.PodReady, v1.PodInitialized, v1.PodReadyToStartContainers,
		v1.PodScheduled, v1.DisruptionTarget, v1.AllContainersRestarting,
	}
	for _, typ := range stamped {
		for _, tc := range []struct {
			name     string
			previous []v1.PodCondition
			next     v1.PodCondition
			want     metav1.Time
		}{
			{"same status, other message", []v1.PodCondition{isTrueSince(typ, old)}, saying(isTrueSince(typ, given), "x", "y"), old},
			{"other status", []v1.PodCondition{isFalseSince(typ, old)}, isTrueSince(typ, given), now},
			{"new", nil, isTrueSince(typ, given), now},
			{"other type before", []v1.PodCondition{isTrueSince("example.com/x", given), isTrueSince(typ, old)}, isTrueSince(typ, given), old},
			{"the first of two is looked up", []v1.PodCondition{isTrueSince(typ, old), isFalseSince(typ, given)}, isTrueSince(typ, given), old},
		} {
			r := mustCompute(t, Update{
				Pod: newPod(), Now: now.Time,
				Status:   newStatus(v1.PodRunning, conditions(tc.next)),
				Previous: newStatus(v1.PodRunning, conditions(tc.previous...)),
			})
			if got := r.Status.Conditions[0].LastTransitionTime; !got.Equal(&tc.want) {
				t.Errorf("%s, %s: time = %v, want %v", typ, tc.name, got, tc.want)
			}
		}
	}
	for _, typ := range []v1.PodConditionType{v1.PodResizePending, v1.PodResizeInProgress, "example.com/gate"} {
		r := mustCompute(t, Update{
			Pod: newPod(), Now: now.Time,
			Status:   newStatus(v1.PodRunning, conditions(isTrueSince(typ, given))),
			Previous: newStatus(v1.PodRunning, conditions(isTrueSince(typ, old))),
		})
		if got := r.Status.Conditions[0].LastTransitionTime; !got.Equal(&given) {
			t.Errorf("%s: time = %v, want the given %v", typ, got, given)
		}
	}
}

// C09: lastTransitionTime follows the status value only.
func TestC09_TransitionTimeFollowsTheStatusOnly(t *testing.T) {
	pod := newPod()
	stored := newStatus(v1.PodRunning, conditions(isTrueSince(v1.PodReady, at(10, 0, 0))), started(at(9, 0, 0)))
	for _, tc := range []struct {
		now     metav1.Time
		next    v1.PodCondition
		changed bool
		want    metav1.Time
	}{
		{at(10, 5, 0), isTrueSince(v1.PodReady, at(10, 5, 0)), false, at(10, 0, 0)},
		{at(10, 6, 0), isFalseSince(v1.PodReady, metav1.Time{}), true, at(10, 6, 0)},
		{at(10, 7, 0), isTrueSince(v1.PodReady, at(10, 0, 0)), true, at(10, 7, 0)},
	} {
		r := mustCompute(t, Update{Pod: pod, Status: newStatus(v1.PodRunning, conditions(tc.next)), Previous: stored, Cached: true, Now: tc.now.Time})
		if got := r.Status.Conditions[0].LastTransitionTime; r.Changed != tc.changed || !got.Equal(&tc.want) {
			t.Errorf("at %v: changed %v, time %v; want %v, %v", tc.now, r.Changed, got, tc.changed, tc.want)
		}
		stored = r.Status
	}
}

// C10: a new message is a change.
func TestC10_NewMessageIsAChange(t *testing.T) {
	stored := newStatus(v1.PodRunning, conditions(saying(isFalseSince(v1.PodReady, at(10, 0, 0)), "", "containers with unready status: [app side]")), started(at(9, 0, 0)))
	next := newStatus(v1.PodRunning, conditions(saying(isFalseSince(v1.PodReady, at(10, 0, 0)), "", "containers with unready status: [side]")))
	r := mustCompute(t, Update{Pod: newPod(), Status: next, Previous: stored, Cached: true, Now: at(10, 1, 0).Time})
	if !r.Changed {
		t.Error("a new message is no change")
	}
	check(t, "time", r.Status.Conditions[0].LastTransitionTime, at(10, 0, 0))
}

func TestSemantics51_StartTime(t *testing.T) {
	old, given := at(8, 0, 0), at(9, 0, 0)
	for _, tc := range []struct {
		name           string
		previous, next statusOption
		want           metav1.Time
	}{
		{"previous wins", started(old), started(given), old},
		{"previous wins over none", started(old), func(*v1.PodStatus) {}, old},
		{"given", func(*v1.PodStatus) {}, started(given), given},
		{"previous zero", started(metav1.Time{}), started(given), given},
		{"none", func(*v1.PodStatus) {}, func(*v1.PodStatus) {}, at(12, 0, 0)},
		{"given zero", func(*v1.PodStatus) {}, started(metav1.Time{}), at(12, 0, 0)},
	} {
		r := mustCompute(t, Update{
			Pod: newPod(), Status: newStatus(v1.PodRunning, tc.next), Previous: newStatus(v1.PodRunning, tc.previous),
			Now: noon.Add(999 * time.Millisecond),
		})
		check(t, tc.name, *r.Status.StartTime, tc.want)
	}
}

func TestSemantics26_VolumeHealthIsInherited(t *testing.T) {
	slow := v1.VolumeHealthCondition{Status: v1.VolumeHealthDegraded, Reason: "Slow"}
	stored := newStatus(v1.PodRunning, health("data", slow), started(at(9, 0, 0)))
	u := Update{Pod: newPod(), Status: newStatus(v1.PodRunning), Previous: stored, Cached: true, Now: noon}
	r := mustCompute(t, u)
	check(t, "inherited", r.Status.VolumeHealth, stored.VolumeHealth)
	if r.Changed || !Unchanged(u) {
		t.Error("an update without volume health is a change")
	}
	r.Status.VolumeHealth[0].HealthConditions[0].Reason = "x"
	check(t, "stored after an edit of the result", stored.VolumeHealth[0].HealthConditions[0], slow)

	u.Status = newStatus(v1.PodRunning, health("logs"))
	r = mustCompute(t, u)
	check(t, "replaced", r.Status.VolumeHealth, u.Status.VolumeHealth)
}

func TestSemantics52_ObservedGenerationNeverGoesDown(t *testing.T) {
	for _, tc := range []struct{ previous, next, want int64 }{{3, 2, 3}, {2, 3, 3}, {3, 3, 3}, {3, 0, 3}} {
		previous, next := newStatus(v1.PodRunning, started(at(9, 0, 0))), newStatus(v1.PodRunning)
		previous.ObservedGeneration, next.ObservedGeneration = tc.previous, tc.next
		u := Update{Pod: newPod(), Status: next, Previous: previous, Cached: true, Now: noon}
		check(t, "generation", mustCompute(t, u).Status.ObservedGeneration, tc.want)
		check(t, "unchanged", Unchanged(u), tc.next <= tc.previous)
	}
}

func TestSemantics53_NewlyTerminated(t *testing.T) {
	previous := newStatus(v1.PodRunning,
		containers(running("app"), terminated("side", 1)),
		initContainers(waiting("init"), terminated("done", 0)),
		ephemerals(running("debug")))
	next := newStatus(v1.PodRunning,
		containers(terminated("app", 3), terminated("side", 2), terminated("new", 4), terminated("new", 5)),
		initContainers(terminated("init", 0), terminated("done", 0)),
		ephemerals(terminated("debug", 1), running("shell"), terminated("app", 6)))
	pod := newPod(inits("init", "done"))
	for _, cached := range []bool{true, false} {
		r := mustCompute(t, Update{Pod: pod, Status: next, Previous: previous, Cached: cached, Now: noon})
		check(t, "terminated", r.Terminated, []Termination{
			{Container: "init", Kind: "init_container", ExitCode: 0, Reason: "Completed"},
			{Container: "app", Kind: "container", ExitCode: 3, Reason: "Error"},
			{Container: "new", Kind: "container", ExitCode: 4, Reason: "Error"},
			{Container: "app", Kind: "ephemeral_container", ExitCode: 6, Reason: "Error"},
			{Container: "debug", Kind: "ephemeral_container", ExitCode: 1, Reason: "Error"},
		})
	}
	twice := newStatus(v1.PodRunning, containers(running("app"), terminated("app", 1)))
	if got := newlyTerminated(twice, twice); got != nil {
		t.Errorf("one of two statuses of a name is counted again: %v", got)
	}
	again := mustCompute(t, Update{Pod: pod, Status: next, Previous: next, Cached: true, Now: noon})
	if again.Terminated != nil {
		t.Errorf("counted again: %v", again.Terminated)
	}
}

// C15: times survive a round trip.
func TestC15_SameInputTwiceIsUnchanged(t *testing.T) {
	odd := metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 987654321, time.UTC))
	s := newStatus(v1.PodRunning, started(odd), conditions(isTrueSince(v1.PodReady, odd)), containers(running("app"), terminated("side", 1)))
	s.ContainerStatuses[0].State.Running.StartedAt = odd
	first := mustCompute(t, Update{Pod: newPod(), Status: s, Now: odd.Time})
	check(t, "start time", *first.Status.StartTime, at(12, 0, 0))
	u := Update{Pod: newPod(), Status: s, Previous: first.Status, Cached: true, Now: odd.Time}
	if mustCompute(t, u).Changed || !Unchanged(u) {
		t.Error("the same input again is a change")
	}
	b, err := Encode(first.Status)
	if err != nil {
		t.Fatal(err)
	}
	u.Previous, err = Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if mustCompute(t, u).Changed || !Unchanged(u) {
		t.Error("the same input after a restart is a change")
	}
}

// C49: huge termination messages.
func TestC49_HugeMessagesTwiceAreUnchanged(t *testing.T) {
	s := newStatus(v1.PodFailed,
		containers(terminated("app", 1, message(strings.Repeat("ä", 1<<19))), terminated("side", 1, message(strings.Repeat("😀", 1<<18)))))
	first := mustCompute(t, Update{Pod: newPod(), Status: s, Now: noon})
	b, err := Encode(first.Status)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 16<<10 {
		t.Errorf("stored status has %d bytes", len(b))
	}
	if r := mustCompute(t, Update{Pod: newPod(), Status: s, Previous: first.Status, Cached: true, Now: noon}); r.Changed {
		t.Error("the same input again is a change")
	}
}

// An ephemeral container leaves less room for each message.
func TestUnchanged_SmallerMessageLimit(t *testing.T) {
	pod := newPod()
	long := strings.Repeat("x", 6144)
	for name, s := range map[string]*v1.PodStatus{
		"state":     newStatus(v1.PodFailed, containers(terminated("app", 1, message(long)))),
		"lastState": newStatus(v1.PodFailed, containers(running("app", after(1), func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.Message = long }))),
	} {
		u := Update{Pod: pod, Status: s, Now: noon}
		u.Previous, u.Cached = mustCompute(t, u).Status, true
		if !Unchanged(u) {
			t.Errorf("%s: Unchanged = false with the same pod", name)
		}
		u.Pod = newPod(func(p *v1.Pod) { p.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1) })
		if Unchanged(u) || !mustCompute(t, u).Changed {
			t.Errorf("%s: a message that has to be cut is no change", name)
		}
	}
}

func TestUnchanged_AsksForCompute(t *testing.T) {
	stored := newStatus(v1.PodRunning, started(at(9, 0, 0)))
	whole := Update{Pod: newPod(), Status: newStatus(v1.PodRunning), Previous: stored, Cached: true, Now: noon}
	if !Unchanged(whole) {
		t.Fatal("Unchanged = false: the cases below show nothing")
	}
	for name, change := range map[string]func(*Update){
		"not stored":       func(u *Update) { u.Cached = false },
		"no pod":           func(u *Update) { u.Pod = nil },
		"no status":        func(u *Update) { u.Status = nil },
		"no previous":      func(u *Update) { u.Previous = nil },
		"no start time":    func(u *Update) { u.Previous = newStatus(v1.PodRunning) },
		"other phase":      func(u *Update) { u.Status = newStatus(v1.PodPending) },
		"refused mismatch": func(u *Update) { *u = mismatch() },
	} {
		u := whole
		change(&u)
		if Unchanged(u) {
			t.Errorf("%s: Unchanged = true", name)
		}
	}
}

// mismatch is an update that equals its previous status and is refused all the same.
func mismatch() Update {
	s := newStatus(v1.PodRunning, initContainers(running("ghost")), started(at(9, 0, 0)))
	return Update{Pod: newPod(inits("init")), Status: s, Previous: s.DeepCopy(), Cached: true, Now: noon}
}

func TestCompute_EmptyUpdate(t *testing.T) {
	want := Result{Status: newStatus("", started(at(12, 0, 0))), Changed: true}
	check(t, "Compute", mustCompute(t, Update{Now: noon}), want)
	check(t, "ComputeTerminate", ComputeTerminate(Update{Now: noon}), want)
}
