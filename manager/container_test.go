// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// wantOutcome makes a readiness call and looks at all that it says.
func (s *store) wantReadiness(uid types.UID, id string, ready bool, want Outcome, wantErr error) {
	s.t.Helper()
	got, err := s.SetContainerReadiness(s.t.Context(), uid, id, ready)
	if got != want {
		s.t.Errorf("outcome %v, want %v", got, want)
	}
	wantError(s.t, err, wantErr)
}

// C07: readiness that arrives before the first status.
func TestC07_ReadinessBeforeTheFirstStatus(t *testing.T) {
	s := open(t)
	s.wantReadiness("uid-a", appID, true, OutcomeUnknownPod, ErrUnknownPod)
	s.wantKinds()
	s.set(pod(oneContainer), status(v1.PodRunning, running("app", appID, false)))
	s.wantReadiness("uid-a", "containerd://other", true, OutcomeUnknownContainer, ErrUnknownContainer)
	s.wantReadiness("uid-a", "c1", true, OutcomeUnknownContainer, ErrUnknownContainer)
	s.wantReadiness("uid-a", appID, true, OutcomeApplied, nil)
	got := s.stored("uid-a")
	if !got.ContainerStatuses[0].Ready || conditionOf(t, got, v1.PodReady).Status != v1.ConditionTrue {
		t.Errorf("status %+v, want app and the pod ready", got)
	}
	s.wantVersion("uid-a", 2)
}

func TestSemantics16_KnownPodWithoutStatus(t *testing.T) {
	pods := fakePods{pods: []*v1.Pod{pod(), pod(mirrorPod("mirror"))}}
	s := open(t, func(o *Options) { o.Pods = pods })
	s.wantReadiness("uid-a", appID, true, OutcomeNoStatus, ErrNoStatus)
	s.wantReadiness("mirror", appID, true, OutcomeUnknownPod, ErrUnknownPod)
	s.wantReadiness("nobody", appID, true, OutcomeUnknownPod, ErrUnknownPod)
	if o, err := s.SetContainerStartup(t.Context(), "uid-a", appID, true); o != OutcomeNoStatus {
		t.Errorf("startup: %v, %v", o, err)
	}
	if o, err := s.SetPodVolumeHealth(t.Context(), "uid-a", "data", nil); o != OutcomeNoStatus {
		t.Errorf("volume health: %v, %v", o, err)
	}
	s.wantKinds()
}

// C08: container readiness moves the pod conditions in the same event.
func TestC08_ReadinessAndConditionsInOneEvent(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady(running("side", sideID, false),
		condition(v1.ContainersReady, v1.ConditionFalse), condition(v1.PodReady, v1.ConditionFalse)))
	// Whoever looks at any moment sees both or none.
	w := s.Watch()
	defer w.Stop()
	inconsistent := func(e *projection.Entry) bool {
		ready := conditionOf(t, e.Status, v1.PodReady).Status == v1.ConditionTrue
		return ready != slices.ContainsFunc(e.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.Name == "side" && c.Ready })
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				if e, ok := s.Entry("uid-a"); ok && inconsistent(e) {
					t.Error("a reader saw side ready and the pod not ready")
					return
				}
			}
		}
	}()
	s.wantReadiness("uid-a", sideID, true, OutcomeApplied, nil)
	s.wantReadiness("uid-a", sideID, true, OutcomeUnchanged, nil)
	close(stop)
	<-done
	got := s.stored("uid-a")
	for _, c := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		if conditionOf(t, got, c).Status != v1.ConditionTrue {
			t.Errorf("%s is not true", c)
		}
	}
	s.wantVersion("uid-a", 2)
	s.wantKinds("set/set", "set/readiness")
}

// C08: container readiness moves the pod conditions in the same event.
func TestC08_MissingReadyConditionIsAdded(t *testing.T) {
	s := open(t)
	s.set(pod(), status(v1.PodRunning, running("app", appID, true), running("side", sideID, false)))
	s.wantReadiness("uid-a", sideID, true, OutcomeApplied, nil)
	if got := conditionOf(t, s.stored("uid-a"), v1.PodReady); got.Status != v1.ConditionTrue || got.LastTransitionTime.IsZero() {
		t.Errorf("condition %+v, want it true with a time", got)
	}
}

// C12: restart keeps `started`.
func TestC12_RestartKeepsStarted(t *testing.T) {
	s := open(t)
	notStarted := func(st *v1.PodStatus) { st.ContainerStatuses[0].Started = nil }
	s.set(pod(), runningReady(notStarted))
	startup := func(started bool, want Outcome) {
		t.Helper()
		got, err := s.SetContainerStartup(t.Context(), "uid-a", appID, started)
		if err != nil || got != want {
			t.Errorf("startup %v: %v, %v; want %v", started, got, err, want)
		}
	}
	// Semantics 20: nil differs from false, too.
	startup(false, OutcomeApplied)
	startup(true, OutcomeApplied)
	s.wantVersion("uid-a", 3)
	s.reopen()
	if got := s.stored("uid-a").ContainerStatuses[0].Started; got == nil || !*got {
		t.Errorf("started is %v after the restart", got)
	}
	startup(true, OutcomeUnchanged)
	s.wantVersion("uid-a", 3)
	s.wantKinds("set/set", "set/startup", "set/startup")
}

// TestContainerProbes_FollowTheContainerID: what a probe has found survives the
// agent, but not the container.
func TestContainerProbes_FollowTheContainerID(t *testing.T) {
	s := open(t)
	want := func(id string, readiness, startup podstatus.ProbeResult) {
		t.Helper()
		for range 2 {
			if got := s.ContainerReadiness("uid-a", id); got != readiness {
				t.Errorf("readiness of %s: %v, want %v", id, got, readiness)
			}
			if got := s.ContainerStartup("uid-a", id); got != startup {
				t.Errorf("startup of %s: %v, want %v", id, got, startup)
			}
			s.reopen()
		}
	}
	want(appID, podstatus.ProbeUnknown, podstatus.ProbeUnknown)
	s.set(pod(), status(v1.PodRunning, running("app", appID, true), running("side", sideID, false)))
	s.wantReadiness("uid-a", sideID, true, OutcomeApplied, nil)
	s.wantReadiness("uid-a", appID, false, OutcomeApplied, nil)
	want(appID, podstatus.ProbeFailure, podstatus.ProbeSuccess)
	want(sideID, podstatus.ProbeSuccess, podstatus.ProbeSuccess)
	// The container restarts: a late result of the old one finds nobody.
	s.set(pod(), status(v1.PodRunning, running("app", "containerd://again", false), running("side", sideID, true)))
	s.wantReadiness("uid-a", appID, true, OutcomeUnknownContainer, ErrUnknownContainer)
	want(appID, podstatus.ProbeUnknown, podstatus.ProbeUnknown)
	want("containerd://again", podstatus.ProbeFailure, podstatus.ProbeSuccess)
	if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want(sideID, podstatus.ProbeUnknown, podstatus.ProbeUnknown)
}

func TestSemantics23_VolumeHealth(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	health := func(want Outcome, conditions ...v1.VolumeHealthCondition) {
		t.Helper()
		got, err := s.SetPodVolumeHealth(t.Context(), "uid-a", "data", conditions)
		if err != nil || got != want {
			t.Errorf("volume health %+v: %v, %v; want %v", conditions, got, err, want)
		}
	}
	lost := v1.VolumeHealthCondition{Status: v1.VolumeHealthDataLoss, Reason: "Disk"}
	health(OutcomeUnchanged)
	health(OutcomeApplied, lost)
	health(OutcomeUnchanged, v1.VolumeHealthCondition{Status: lost.Status, Reason: lost.Reason, Message: "other words"})
	s.wantKinds("set/set", "set/volume")
	// Semantics 26: an update without volume health inherits it, also after a restart.
	s.reopen()
	s.set(pod(), runningReady(text("new")))
	got := s.stored("uid-a").VolumeHealth
	if len(got) != 1 || got[0].Name != "data" || len(got[0].HealthConditions) != 1 || got[0].LastTransitionTime.IsZero() {
		t.Errorf("volume health %+v, want the data loss", got)
	}
	health(OutcomeApplied)
	if got := s.stored("uid-a").VolumeHealth; len(got) != 1 || len(got[0].HealthConditions) != 0 {
		t.Errorf("volume health %+v, want an entry without conditions", got)
	}
}

// TestSemantics21_ContainerCallsAreNotForced: a pod that is being deleted gets no
// version for what normalises to the stored status.
func TestSemantics21_ContainerCallsAreNotForced(t *testing.T) {
	s := open(t)
	s.set(pod(deleted), runningReady())
	for i, want := range []Outcome{OutcomeApplied, OutcomeUnchanged} {
		got, err := s.SetPodVolumeHealth(t.Context(), "uid-a", "data", []v1.VolumeHealthCondition{{Status: v1.VolumeHealthDegraded, Reason: "\xff"}})
		if err != nil || got != want {
			t.Errorf("call %d: %v, %v; want %v", i, got, err, want)
		}
	}
}
