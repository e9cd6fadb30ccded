// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

func TestSemantics10_13_UnchangedMakesNoVersion(t *testing.T) {
	s := open(t)
	first := s.set(pod(), runningReady())
	if first.Version != 1 || first.UID != "uid-a" {
		t.Errorf("first change %+v, want version 1 of uid-a", first)
	}
	second, err := s.SetPodStatus(t.Context(), pod(), runningReady())
	if err != nil || second.Changed || second.Version != 1 || second.Sequence != first.Sequence {
		t.Errorf("second change %+v (%v), want version 1, sequence %d, unchanged", second, err, first.Sequence)
	}
	if diff := cmp.Diff(s.stored("uid-a"), second.Status()); diff != "" {
		t.Errorf("returned status (-stored +returned):\n%s", diff)
	}
	s.wantKinds("set/set")
}

func TestSemantics11_ObservedGenerationIsThePods(t *testing.T) {
	s := open(t)
	given := runningReady()
	given.ObservedGeneration = 99
	s.set(pod(func(p *v1.Pod) { p.Generation = 4 }), given)
	if got := s.stored("uid-a").ObservedGeneration; got != 4 {
		t.Errorf("observed generation %d, want 4", got)
	}
	s.set(pod(func(p *v1.Pod) { p.Generation = 3 }), runningReady(text("older pod")))
	if got := s.stored("uid-a").ObservedGeneration; got != 4 {
		t.Errorf("semantics 52: observed generation went down to %d", got)
	}
}

func TestSemantics12_DeletionForcesAVersion(t *testing.T) {
	s := open(t)
	s.set(pod(deleted), runningReady())
	c, err := s.SetPodStatus(t.Context(), pod(deleted), runningReady())
	if err != nil || !c.Changed || c.Version != 2 {
		t.Errorf("change %+v (%v), want version 2", c, err)
	}
	if e, _ := s.Entry("uid-a"); e.Finished {
		t.Error("semantics 14: SetPodStatus marked the pod as finished")
	}
	// Semantics 21: container calls are not forced.
	if o, err := s.SetContainerReadiness(t.Context(), "uid-a", appID, true); err != nil || o != OutcomeUnchanged {
		t.Errorf("readiness: %v (%v), want unchanged", o, err)
	}
}

// TestSemantics08_PreviousStatus: the mirror's status counts before the pod's own,
// the stored one before both. Start times tell which was followed.
func TestSemantics08_PreviousStatus(t *testing.T) {
	startedAt := func(hour int) v1.PodStatus {
		at := metav1.NewTime(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC))
		return v1.PodStatus{Phase: v1.PodRunning, StartTime: &at}
	}
	source := pod(staticPod, withStatus(startedAt(1)))
	mirror := pod(mirrorPod("mirror"), withStatus(startedAt(2)))
	tests := []struct {
		name  string
		calls func(s *store)
		want  int
	}{
		{"the pod's own", func(s *store) { s.set(source, status(v1.PodRunning)) }, 1},
		{"the mirror's", func(s *store) {
			s.memory.statics[nameOf(source)] = "source"
			s.memory.pods["source"] = rememberedPod{name: nameOf(source), static: true}
			s.memory.mirror(mirror)
			s.set(source, status(v1.PodRunning))
		}, 2},
		{"the stored one", func(s *store) {
			s.set(pod(staticPod, withStatus(startedAt(3))), status(v1.PodPending))
			s.memory.mirror(mirror)
			s.set(source, status(v1.PodRunning))
		}, 3},
		{"semantics 9: the stored one after a restart", func(s *store) {
			s.set(pod(staticPod, withStatus(startedAt(3))), status(v1.PodPending))
			s.reopen()
			s.set(source, status(v1.PodRunning))
		}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			tt.calls(s)
			if got := s.stored("source").StartTime.UTC().Hour(); got != tt.want {
				t.Errorf("start time from %d o'clock, want %d", got, tt.want)
			}
		})
	}
}

func TestSetPodStatus_BadInputChangesNothing(t *testing.T) {
	tests := []struct {
		name  string
		pod   *v1.Pod
		field string
	}{
		{"no pod", nil, "pod"},
		{"no UID", pod(func(p *v1.Pod) { p.UID = "" }), "metadata.uid"},
		{"no name", pod(func(p *v1.Pod) { p.Name = "" }), "metadata.name"},
		{"no namespace", pod(func(p *v1.Pod) { p.Namespace = "" }), "metadata.namespace"},
		{"UID with a slash", pod(func(p *v1.Pod) { p.UID = "a/b" }), "metadata.uid"},
		{"UID with a control character", pod(func(p *v1.Pod) { p.UID = "a\x1b[2J" }), "metadata.uid"},
		{"endless UID", pod(func(p *v1.Pod) { p.UID = types.UID(strings.Repeat("a", 254)) }), "metadata.uid"},
		{"odd name", pod(func(p *v1.Pod) { p.Name = "Web_0" }), "metadata.name"},
		{"odd namespace", pod(func(p *v1.Pod) { p.Namespace = "a.b" }), "metadata.namespace"},
	}
	for _, tt := range tests {
		t.Run("G9 "+tt.name, func(t *testing.T) {
			s := open(t)
			for _, call := range []func() error{
				func() error { _, err := s.SetPodStatus(t.Context(), tt.pod, runningReady()); return err },
				func() error { _, err := s.TerminatePod(t.Context(), tt.pod); return err },
				func() error { _, err := s.Observe(t.Context(), tt.pod); return err },
			} {
				err := call()
				wantError(t, err, ErrInvalid)
				if e, ok := errors.AsType[*InvalidError](err); ok && e.Field != tt.field {
					t.Errorf("error %v, want one about %s", err, tt.field)
				}
			}
			s.wantKinds()
		})
	}
}

func TestSetPodStatus_UIDOfAnotherPod(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	other := pod(func(p *v1.Pod) { p.Name = "web-1" })
	_, err := s.SetPodStatus(t.Context(), other, runningReady(text("other")))
	wantError(t, err, ErrUIDConflict)
	if e, ok := errors.AsType[*UIDConflictError](err); !ok || e.Stored.Name != "web-0" || e.Given.Name != "web-1" {
		t.Errorf("error %v does not name both pods", err)
	}
	_, err = s.TerminatePod(t.Context(), other)
	wantError(t, err, ErrUIDConflict)
	s.wantVersion("uid-a", 1)
}

func TestSetPodStatusIf(t *testing.T) {
	s := open(t)
	if _, err := s.SetPodStatusIf(t.Context(), pod(), runningReady(), 1); !errors.Is(err, ErrVersionConflict) {
		t.Errorf("no status, version 1 expected: error %v", err)
	}
	if _, err := s.SetPodStatusIf(t.Context(), pod(), runningReady(), 0); err != nil {
		t.Errorf("no status, none expected: error %v", err)
	}
	_, err := s.SetPodStatusIf(t.Context(), pod(), runningReady(text("x")), 0)
	if e, ok := errors.AsType[*VersionConflictError](err); !ok || e.Stored != 1 || e.Expected != 0 {
		t.Errorf("version 1, none expected: error %v", err)
	}
	if c, err := s.SetPodStatusIf(t.Context(), pod(), runningReady(text("x")), 1); err != nil || c.Version != 2 {
		t.Errorf("version 1 expected: %+v, %v", c, err)
	}
	s.wantVersion("uid-a", 2)
}

// C01: Failed never becomes Succeeded.
func TestC01_FailedNeverBecomesSucceeded(t *testing.T) {
	s := open(t)
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodPending))
	s.set(p, status(v1.PodRunning, running("app", appID, true)))
	s.set(p, status(v1.PodFailed, terminated("app", 1, "Error")))
	for _, refused := range []v1.PodStatus{
		status(v1.PodSucceeded, terminated("app", 0, "Completed")),
		status(v1.PodRunning, running("app", appID, true)),
	} {
		c, err := s.SetPodStatus(t.Context(), p, refused)
		wantError(t, err, podstatus.ErrIllegalTransition)
		if c.Changed || c.Status() != nil {
			t.Errorf("a refused update returned %+v", c)
		}
		got := s.stored("uid-a")
		if got.Phase != v1.PodFailed || stateOf(t, got, "app").Terminated.ExitCode != 1 {
			t.Errorf("stored status %+v, want it as before", got)
		}
		s.wantVersion("uid-a", 3)
	}
	s.wantKinds("set/set", "set/set", "set/set", "rejected/set", "rejected/set")
	if c := s.set(p, status(v1.PodFailed, terminated("app", 1, "Error"), text("detail"))); c.Version != 4 {
		t.Errorf("version %d, want 4", c.Version)
	}
}

// C02: Succeeded pod that is being deleted.
func TestC02_SucceededPodThatIsBeingDeleted(t *testing.T) {
	s := open(t)
	s.set(pod(never, oneContainer), status(v1.PodSucceeded, terminated("app", 0, "Completed")))
	_, err := s.SetPodStatus(t.Context(), pod(never, oneContainer, deleted), status(v1.PodPending, waiting("app", "ContainerCreating")))
	wantError(t, err, podstatus.ErrIllegalTransition)
	got := s.stored("uid-a")
	if got.Phase != v1.PodSucceeded || stateOf(t, got, "app").Terminated == nil {
		t.Errorf("stored status %+v, want it as before", got)
	}
	s.wantVersion("uid-a", 1)
}

// C03: terminated container cannot come back under restartPolicy Never.
func TestC03_TerminatedContainerUnderRestartPolicyNever(t *testing.T) {
	s := open(t)
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodPending))
	s.set(p, status(v1.PodRunning, terminated("app", 128, "ContainerCannotRun")))
	_, err := s.SetPodStatus(t.Context(), p, status(v1.PodRunning, waiting("app", "CrashLoopBackOff")))
	wantError(t, err, podstatus.ErrIllegalTransition)
	if e, ok := errors.AsType[*podstatus.TransitionError](err); !ok || e.Container != "app" {
		t.Errorf("semantics 55: error %v does not name the container", err)
	}
	s.wantVersion("uid-a", 2)
	s.wantKinds("set/set", "set/set", "rejected/set")

	c, err := s.TerminatePod(t.Context(), p)
	if err != nil || c.Version != 3 {
		t.Fatalf("TerminatePod: %+v, %v", c, err)
	}
	got := s.stored("uid-a")
	if got.Phase != v1.PodFailed || stateOf(t, got, "app").Terminated.ExitCode != 128 {
		t.Errorf("stored status %+v, want Failed with exit code 128", got)
	}

	always := pod(oneContainer, number(1))
	s.set(always, status(v1.PodRunning, terminated("app", 128, "ContainerCannotRun")))
	s.set(always, status(v1.PodRunning, waiting("app", "CrashLoopBackOff")))
}

func TestSemantics55_RejectionIsJournalledOncePerVersion(t *testing.T) {
	var told int
	s := open(t, func(o *Options) { o.Hooks.Rejected = func(*podstatus.TransitionError) { told++ } })
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodRunning, terminated("app", 1, "Error")))
	again := func() {
		_, err := s.SetPodStatus(t.Context(), p, status(v1.PodRunning, running("app", appID, true)))
		wantError(t, err, podstatus.ErrIllegalTransition)
	}
	for range 3 {
		again()
	}
	if told != 3 || s.Status().Rejected != 3 {
		t.Errorf("told %d times, counted %d; want 3", told, s.Status().Rejected)
	}
	s.wantKinds("set/set", "rejected/set")
	for e, err := range s.Journal().Events(1, 0) {
		if err == nil && e.Kind == journal.KindRejected {
			if e.Version != 1 || e.Attributes[journal.AttrContainer] != "app" || e.Attributes[journal.AttrFrom] != "terminated" ||
				e.Attributes[journal.AttrTo] != "running" || e.Attributes[journal.AttrMessage] == "" {
				t.Errorf("rejected event %+v does not say what was refused", e)
			}
		}
	}
	s.set(p, status(v1.PodRunning, terminated("app", 1, "Error"), text("new version")))
	if n := len(s.rejections.last); n != 0 {
		t.Errorf("refusals of %d pods are kept beyond their version", n)
	}
	again()
	s.wantKinds("set/set", "rejected/set", "set/set", "rejected/set")
}

// A refused phase is no container's.
func TestSemantics55_RejectedPhaseNamesNoContainer(t *testing.T) {
	s := open(t)
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodFailed, terminated("app", 1, "Error")))
	_, err := s.SetPodStatus(t.Context(), p, status(v1.PodRunning, terminated("app", 1, "Error")))
	wantError(t, err, podstatus.ErrIllegalTransition)
	s.wantKinds("set/set", "rejected/set")
	for e, err := range s.Journal().Events(1, 0) {
		if container, ok := e.Attributes[journal.AttrContainer]; err == nil && e.Kind == journal.KindRejected && (ok || e.Attributes[journal.AttrFrom] != "Failed") {
			t.Errorf("got container %q, attributes %v", container, e.Attributes)
		}
	}
}

// C09: lastTransitionTime follows the status value only.
func TestC09_TransitionTimeFollowsTheValue(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t)
			clock := func() time.Time { return time.Now().UTC().Truncate(time.Second) }
			ready := func(value v1.ConditionStatus, at time.Time) v1.PodStatus {
				return status(v1.PodRunning, condition(v1.PodReady, value, changedAt(at)))
			}
			step := func() {
				if restart {
					s.reopen()
				}
				time.Sleep(5 * time.Minute)
			}
			wantTime := func(want time.Time, version journal.Version) {
				t.Helper()
				s.wantVersion("uid-a", version)
				if got := conditionOf(t, s.stored("uid-a"), v1.PodReady).LastTransitionTime; !got.Time.Equal(want) {
					t.Errorf("restart %v: transition time %v, want %v", restart, got, want)
				}
			}
			begin := clock()
			s.set(pod(), ready(v1.ConditionTrue, begin))
			step()
			if c, err := s.SetPodStatus(t.Context(), pod(), ready(v1.ConditionTrue, clock())); err != nil || c.Changed {
				t.Errorf("same value: %+v, %v", c, err)
			}
			wantTime(begin, 1)
			step()
			second := clock()
			s.set(pod(), ready(v1.ConditionFalse, time.Time{}))
			wantTime(second, 2)
			step()
			third := clock()
			s.set(pod(), ready(v1.ConditionTrue, begin))
			wantTime(third, 3)
		})
	}
}

// C10: a new message is a change.
func TestC10_NewMessageIsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		unready := func(m string) v1.PodStatus {
			return status(v1.PodRunning, condition(v1.PodReady, v1.ConditionFalse, message(m)))
		}
		s.set(pod(), unready("containers with unready status: [app side]"))
		before := conditionOf(t, s.stored("uid-a"), v1.PodReady)
		time.Sleep(time.Minute)
		s.set(pod(), unready("containers with unready status: [side]"))
		after := conditionOf(t, s.stored("uid-a"), v1.PodReady)
		s.wantVersion("uid-a", 2)
		if after.Message == before.Message || !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
			t.Errorf("condition %+v, want a new message and the old time of %+v", after, before)
		}
	})
}

// C11: restart does not make pods unready.
func TestC11_RestartDoesNotMakePodsUnready(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	before := s.stored("uid-a")
	s.reopen()
	if diff := cmp.Diff(before, s.stored("uid-a")); diff != "" {
		t.Errorf("status after the restart (-before +after):\n%s", diff)
	}
	s.wantVersion("uid-a", 1)
}

// C13: same UID again after it was removed.
func TestC13_SameUIDAgainAfterItWasRemoved(t *testing.T) {
	s := open(t)
	for i := range 6 {
		s.set(pod(never), status(v1.PodRunning, text(strings.Repeat("x", i+1))))
	}
	s.set(pod(never), status(v1.PodFailed))
	s.wantVersion("uid-a", 7)
	if removed, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil || len(removed) != 1 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	for range 2 {
		if _, ok := s.GetPodStatus("uid-a"); ok {
			t.Error("the removed pod has a status")
		}
		s.reopen()
	}
	if c := s.set(pod(never), status(v1.PodPending)); c.Version <= 7 {
		t.Errorf("version %d was used before", c.Version)
	}
	if e, _ := s.Entry("uid-a"); e.Incarnation != 2 || e.Finished {
		t.Errorf("entry %+v, want the second incarnation, not finished", e)
	}
}

// C15: times survive a round trip.
func TestC15_TimesAreWholeSeconds(t *testing.T) {
	s := open(t)
	fine := time.Date(2026, 1, 1, 12, 0, 0, 987654321, time.UTC)
	given := runningReady(condition("example.com/gate", v1.ConditionTrue, changedAt(fine)))
	given.StartTime = &metav1.Time{Time: fine}
	s.set(pod(), given)
	for range 2 {
		got := s.stored("uid-a")
		if want := fine.Truncate(time.Second); !got.StartTime.Time.Equal(want) ||
			!conditionOf(t, got, "example.com/gate").LastTransitionTime.Time.Equal(want) {
			t.Errorf("times %v and %v, want %v", got.StartTime, got.Conditions, want)
		}
		if c, err := s.SetPodStatus(t.Context(), pod(), given); err != nil || c.Changed || c.Version != 1 {
			t.Errorf("the same input again: %+v, %v", c, err)
		}
		s.reopen()
	}
}

func TestSemantics94_AFailedWriteLeavesTheOldStatus(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	if err := s.journal.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := s.SetPodStatus(t.Context(), pod(), runningReady(text("lost")))
	wantError(t, err, journal.ErrClosed)
	if c.Changed || s.stored("uid-a").Message != "" {
		t.Errorf("change %+v, stored message %q; want nothing changed", c, s.stored("uid-a").Message)
	}
	s.wantVersion("uid-a", 1)
}

func TestSetPodStatus_TooLarge(t *testing.T) {
	s := open(t)
	_, err := s.SetPodStatus(t.Context(), pod(), status(v1.PodRunning, text(strings.Repeat("x", journal.MaxStatusBytes+1))))
	wantError(t, err, journal.ErrTooLarge)
	s.wantKinds()
	s.set(pod(), runningReady())
}
