// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/podstatus"
)

// C14: meant for -race.
func TestC14_ConcurrentCallsShareNothing(t *testing.T) {
	s := open(t)
	shared := pod(never, withStatus(runningReady()))
	before := shared.DeepCopy()
	statuses := []v1.PodStatus{
		runningReady(), runningReady(text("a")), runningReady(running("side", sideID, false)),
		runningReady(terminated("app", 1, "Error"), terminated("side", 0, "Completed"), func(st *v1.PodStatus) { st.Phase = v1.PodFailed }),
	}
	var copies []v1.PodStatus
	for i := range statuses {
		copies = append(copies, *statuses[i].DeepCopy())
	}
	s.set(shared, statuses[0])
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 250 {
				switch rand.IntN(10) {
				case 0:
					// Ends most of what is possible; so it is rare.
					if rand.IntN(50) == 0 {
						s.TerminatePod(t.Context(), shared)
					}
				case 1, 2, 3:
					s.SetPodStatus(t.Context(), shared, statuses[rand.IntN(len(statuses))])
				case 4, 5:
					s.SetContainerReadiness(t.Context(), shared.UID, appID, rand.IntN(2) == 0)
				case 6:
					s.SetContainerStartup(t.Context(), shared.UID, appID, rand.IntN(2) == 0)
				default:
					if got, ok := s.GetPodStatus(shared.UID); ok {
						got.ContainerStatuses[0].Ready = !got.ContainerStatuses[0].Ready
						got.Conditions[0].Message = "edited"
					}
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(before, shared); diff != "" {
		t.Errorf("the pod was changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(copies, statuses); diff != "" {
		t.Errorf("the statuses were changed (-before +after):\n%s", diff)
	}
	if got := s.stored(shared.UID); len(got.Conditions) > 0 && got.Conditions[0].Message == "edited" {
		t.Error("a reader's edit is in the store")
	}
}

// C14: no sharing of memory with callers.
func TestC14_EditsOfTheCallerStayTheCallers(t *testing.T) {
	s := open(t)
	given := runningReady()
	p := pod()
	change := s.set(p, given)
	want := s.stored("uid-a")

	given.ContainerStatuses[0].Ready = false
	*given.ContainerStatuses[0].Started = false
	p.Spec.Containers[0].Name = "edited"
	returned := change.Status()
	returned.ContainerStatuses[0].Ready = false
	returned.Conditions[0].Message = "edited"
	got := s.stored("uid-a")
	got.ContainerStatuses[1].State.Running = nil
	known, _ := s.Pod("uid-a")
	known.Spec.Containers[0].Image = "edited"
	known.Status.Conditions[0].Message = "edited"

	check := func() {
		t.Helper()
		if diff := cmp.Diff(want, s.stored("uid-a")); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, change.Status()); diff != "" {
			t.Errorf("returned (-want +got):\n%s", diff)
		}
		if known, _ := s.Pod("uid-a"); known.Spec.Containers[0].Name != "app" || known.Spec.Containers[0].Image != "app:1" {
			t.Errorf("pod %+v", known.Spec.Containers[0])
		}
	}
	check()
	for e, err := range s.Journal().Events(change.Sequence, change.Sequence) {
		if err != nil {
			t.Fatal(err)
		}
		journalled, err := podstatus.Decode(e.Status)
		if err != nil || !podstatus.Equal(want, journalled) {
			t.Errorf("journalled %+v, %v", journalled, err)
		}
	}
	s.reopen()
	check()
}
