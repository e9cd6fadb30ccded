// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// What the cases say about a whole store, with its journal, and its API server.

// wantNever wants that the server never saw a phase.
func (c *cluster) wantNever(phase v1.PodPhase) {
	c.t.Helper()
	for _, got := range c.phases("uid-a") {
		if got == phase {
			c.t.Errorf("the server saw %v", c.phases("uid-a"))
		}
	}
}

// C02: Succeeded pod that is being deleted.
func TestC02_TheServerNeverSeesPending(t *testing.T) {
	p := pod(never, oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(p, status(v1.PodSucceeded, terminated("app", 0, "Completed")))
		c.settle()
		_, err := c.SetPodStatus(t.Context(), pod(never, oneContainer, deleted), status(v1.PodPending, waiting("app", "ContainerCreating")))
		wantError(t, err, podstatus.ErrIllegalTransition)
		time.Sleep(time.Minute)
		synctest.Wait()
		c.wantNever(v1.PodPending)
		c.wantRequests(fakeapi.Patch, 1)
		if live := c.live("web-0").Status; live.Phase != v1.PodSucceeded || stateOf(t, &live, "app").Terminated == nil {
			t.Errorf("the server has %+v", live)
		}
	}, []*v1.Pod{p})
}

// C03: terminated container cannot come back under restartPolicy Never.
func TestC03_TheEndReachesTheServer(t *testing.T) {
	p := pod(never, oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(p, status(v1.PodRunning, terminated("app", 128, "ContainerCannotRun")))
		c.settle()
		_, err := c.SetPodStatus(t.Context(), p, status(v1.PodRunning, waiting("app", "CrashLoopBackOff")))
		wantError(t, err, podstatus.ErrIllegalTransition)
		if _, err := c.TerminatePod(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		live := c.live("web-0").Status
		if app := stateOf(t, &live, "app").Terminated; live.Phase != v1.PodFailed || app == nil || app.ExitCode != 128 {
			t.Errorf("the server has %+v, want Failed with exit code 128", live)
		}
		c.wantAcked("uid-a")
	}, []*v1.Pod{p})
}

// C04: TerminatePod ignores the stale status inside the pod object.
func TestC04_TheServerNeverSeesTheStaleStatus(t *testing.T) {
	p := pod(never, oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(p, status(v1.PodFailed, terminated("app", 2, "Error"), reason("DeadlineExceeded")))
		c.settle()
		old := pod(never, oneContainer, withStatus(status(v1.PodRunning, running("app", appID, true))))
		if _, err := c.TerminatePod(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.wantNever(v1.PodRunning)
		live := c.live("web-0").Status
		if app := stateOf(t, &live, "app").Terminated; live.Phase != v1.PodFailed || live.Reason != "DeadlineExceeded" || app == nil || app.ExitCode != 2 {
			t.Errorf("the server has %+v, want the end that was known", live)
		}
	}, []*v1.Pod{p})
}

// C31: 404 now, there later.
func TestC31_TheStatusOutlivesTheNotFound(t *testing.T) {
	p := pod(oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		app := running("app", appID, true)
		c.set(p, status(v1.PodRunning, app, text("one")))
		c.settle()
		if err := c.api.Hide("default", "web-0"); err != nil {
			t.Fatal(err)
		}
		c.set(p, status(v1.PodRunning, app, text("two")))
		for range 10 {
			c.settle()
			if got, ok := c.GetPodStatus("uid-a"); !ok || got.Message != "two" {
				t.Fatalf("meanwhile the store has %+v, %v", got, ok)
			}
		}
		if err := c.api.Unhide("default", "web-0"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		c.wantAcked("uid-a")
		if got := c.live("web-0").Status.Message; got != "two" {
			t.Errorf("the server has %q", got)
		}
		if change := c.set(p, status(v1.PodRunning, app, text("three"))); change.Version != 3 {
			t.Errorf("the next version is %d, want 3", change.Version)
		}
	}, []*v1.Pod{p})
}

// C36: of a backlog only the newest matters, but all of it is history.
func TestC36_TheJournalHasEveryStatus(t *testing.T) {
	p := pod(oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Latency: 200 * time.Millisecond})
		restarted := func(n int32) v1.PodStatus {
			s := status(v1.PodRunning, running("app", appID, true))
			s.ContainerStatuses[0].RestartCount = n
			return s
		}
		for n := range int32(500) {
			c.set(p, restarted(n+1))
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := c.live("web-0").Status.ContainerStatuses[0].RestartCount; got != 500 {
			t.Errorf("the server has restart %d", got)
		}
		if n := c.api.Count(fakeapi.Patch); n > 20 {
			t.Errorf("%d PATCHes, want at most 20", n)
		}
		sets := 0
		for e, err := range c.Journal().Events(1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindSet {
				sets++
			}
		}
		if sets != 500 {
			t.Errorf("the journal has %d statuses, want 500", sets)
		}
	}, []*v1.Pod{p})
}
