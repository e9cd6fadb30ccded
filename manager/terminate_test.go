// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// C04: TerminatePod ignores the stale status inside the pod object.
func TestC04_TerminatePodIgnoresTheStatusInThePod(t *testing.T) {
	s := open(t)
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodFailed, terminated("app", 2, "Error"), reason("DeadlineExceeded")))
	old := pod(never, oneContainer, withStatus(status(v1.PodRunning, running("app", appID, true))))
	c, err := s.TerminatePod(t.Context(), old)
	if err != nil || c.Version != 2 {
		t.Fatalf("TerminatePod: %+v, %v", c, err)
	}
	got := s.stored("uid-a")
	if got.Phase != v1.PodFailed || got.Reason != "DeadlineExceeded" || stateOf(t, got, "app").Terminated.ExitCode != 2 {
		t.Errorf("stored %+v, want the end that was known", got)
	}
}

// C05: TerminatePod closes every container that was left open.
func TestC05_TerminatePodClosesEveryContainer(t *testing.T) {
	s := open(t)
	p := pod(never)
	s.set(p, status(v1.PodRunning, terminated("app", 1, "Error"), running("side", sideID, true)))
	if _, err := s.TerminatePod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	got := s.stored("uid-a")
	side, app := stateOf(t, got, "side").Terminated, stateOf(t, got, "app").Terminated
	if side == nil || side.ExitCode != 137 || side.Reason != podstatus.ReasonStatusUnknown || side.ContainerID != sideID {
		t.Errorf("side %+v, want 137 with an unknown state and its ID", side)
	}
	if app == nil || app.ExitCode != 1 || app.Reason != "Error" {
		t.Errorf("app %+v, want the end that was known", app)
	}
	if got.Phase != v1.PodFailed {
		t.Errorf("phase %s, want Failed", got.Phase)
	}
	s.wantKinds("set/set", "set/terminate")
}

// TestSemantics39_TerminateIsAlwaysForced: each call makes a version and keeps the
// pod finished, also for a pod that was never stored.
func TestSemantics39_TerminateIsAlwaysForced(t *testing.T) {
	s := open(t)
	p := pod(never, withStatus(runningReady()))
	for want := range 3 {
		c, err := s.TerminatePod(t.Context(), p)
		if err != nil || !c.Changed || int(c.Version) != want+1 {
			t.Errorf("call %d: %+v, %v", want, c, err)
		}
	}
	s.reopen()
	if e, _ := s.Entry("uid-a"); !e.Finished || e.Status.Phase != v1.PodFailed {
		t.Errorf("entry %+v after the restart, want it finished and failed", e)
	}
}

func TestSemantics47_OnceFinishedAlwaysFinished(t *testing.T) {
	var log bytes.Buffer
	s := open(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodRunning, running("app", appID, true)))
	if _, err := s.TerminatePod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.set(p, status(v1.PodFailed, terminated("app", 137, "ContainerStatusUnknown"), text("late")))
	if e, _ := s.Entry("uid-a"); !e.Finished || e.Status.Message != "late" {
		t.Errorf("entry %+v, want the late status, finished", e)
	}
	if !strings.Contains(log.String(), "finished pod changes") {
		t.Errorf("log %q does not mention it", log.String())
	}
}

// TestIncarnation_StaticPodReturns: a static pod keeps its UID; when it runs again
// after its end, that is a new life with the old one's history before it.
func TestIncarnation_StaticPodReturns(t *testing.T) {
	for _, removed := range []bool{false, true} {
		s := open(t)
		p := pod(staticPod)
		s.set(p, runningReady())
		if _, err := s.TerminatePod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		want := func(incarnation journal.Incarnation, finished bool) {
			t.Helper()
			for range 2 {
				if e, _ := s.Entry("source"); e == nil || e.Incarnation != incarnation || e.Finished != finished {
					t.Errorf("removed %v: entry %+v, want incarnation %d, finished %v", removed, e, incarnation, finished)
				}
				s.reopen()
			}
		}
		want(1, true)
		if removed {
			if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		s.set(p, status(v1.PodRunning, text("again")))
		want(2, false)
		s.set(p, status(v1.PodRunning, text("and on")))
		want(2, false)
		var lives []journal.Incarnation
		var firsts []journal.Sequence
		for e, err := range s.Journal().Events(0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.UID != "source" {
				continue
			}
			lives = append(lives, e.Incarnation)
			if e.First {
				firsts = append(firsts, e.Sequence)
			}
		}
		if !slices.IsSorted(lives) || lives[0] != 1 || lives[len(lives)-1] != 2 || len(firsts) != 2 {
			t.Errorf("removed %v: history has incarnations %v, begun by %v; want two", removed, lives, firsts)
		}
	}
}

func TestSemantics45_OddPhaseIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := open(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if _, err := s.TerminatePod(t.Context(), pod(withStatus(status(v1.PodUnknown)))); err != nil {
		t.Fatal(err)
	}
	if got := s.stored("uid-a").Phase; got != v1.PodFailed {
		t.Errorf("phase %s, want Failed", got)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "phase=Unknown") {
		t.Errorf("log %q, want an error that names the phase", log.String())
	}
}

func TestSemantics45_StaticPodsKeepTheirPhase(t *testing.T) {
	s := open(t)
	s.set(pod(staticPod), runningReady())
	c, err := s.TerminatePod(t.Context(), pod(staticPod))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Status(); got.Phase != v1.PodRunning || stateOf(t, got, "app").Terminated == nil {
		t.Errorf("status %+v, want Running with ended containers", got)
	}
}

// TestSemantics48_TerminateIsNotLost: what the transition check refuses does not
// keep the pod from being finished.
func TestSemantics48_TerminateIsNotLost(t *testing.T) {
	s := open(t)
	stored := pod(never, func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{{Name: "setup"}} })
	st := runningReady()
	st.InitContainerStatuses = []v1.ContainerStatus{{Name: "setup", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	s.set(stored, st)
	// Semantics 72: without the init container in the spec every update is refused.
	changed := pod(never)
	_, err := s.SetPodStatus(t.Context(), changed, status(v1.PodFailed))
	wantError(t, err, podstatus.ErrIllegalTransition)
	if _, err := s.TerminatePod(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Entry("uid-a"); !e.Finished || e.Status.Phase != v1.PodFailed {
		t.Errorf("entry %+v, want it finished and failed", e)
	}
}

func TestFinishPod(t *testing.T) {
	s := open(t)
	_, err := s.FinishPod(t.Context(), "uid-a")
	wantError(t, err, ErrUnknownPod)
	p := pod(never, oneContainer)
	s.set(p, status(v1.PodSucceeded, terminated("app", 0, "Completed")))
	c, err := s.FinishPod(t.Context(), "uid-a")
	if err != nil || !c.Changed || c.Version != 2 || c.Status().Phase != v1.PodSucceeded {
		t.Errorf("finish: %+v, %v", c, err)
	}
	for range 2 {
		if e, _ := s.Entry("uid-a"); !e.Finished || e.Status.Phase != v1.PodSucceeded {
			t.Errorf("entry %+v, want it finished, its status as before", e)
		}
		if c, err := s.FinishPod(t.Context(), "uid-a"); err != nil || c.Changed || c.Version != 2 {
			t.Errorf("finished again: %+v, %v", c, err)
		}
		s.reopen()
	}
	s.wantKinds("set/set", "finished")
}

func TestFinishPod_WithoutStatus(t *testing.T) {
	s := open(t, func(o *Options) { o.Pods = fakePods{pods: []*v1.Pod{pod()}} })
	_, err := s.FinishPod(t.Context(), "uid-a")
	wantError(t, err, ErrNoStatus)
}
