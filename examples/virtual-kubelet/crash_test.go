// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestCrash runs the program against a real API server and kills it while statuses
// change, with the server there and with the server away.
func TestCrash(t *testing.T) {
	plane := startPlane(t)
	t.Run("C17_Outage", func(t *testing.T) { testOutage(t, plane) })
	t.Run("KillLoop", func(t *testing.T) { testKillLoop(t, plane) })
	t.Run("Deletion", func(t *testing.T) { testDeletion(t, plane) })
	t.Run("Refused", func(t *testing.T) { testRefused(t, plane) })
	t.Run("Terminate", func(t *testing.T) { testTerminate(t, plane) })
	checkWriters(t, plane)
}

// testOutage is virtual-kubelet/virtual-kubelet#762: pods end while the API server is away,
// the process is killed, both come back. What has ended must not be run again, and its end
// must reach the server.
func testOutage(t *testing.T, plane *controlPlane) {
	const (
		n    = 24
		ends = 3 // pods that end before each kill
	)
	c := newChild(t, plane, "outage")
	c.start(t)
	var pods []*v1.Pod
	for i := range n { // one ends every two seconds
		pods = append(pods, newPod(fmt.Sprintf("outage-%02d", i), v1.RestartPolicyNever,
			runsForKey, fmt.Sprint(6+2*i, "s"), exitCodeKey, fmt.Sprint(i%2*3)))
	}
	pods = plane.create(t, c.node, append(pods, newPod("outage-stays", v1.RestartPolicyAlways))...)
	again := plane.create(t, c.node, newPod("outage-again", v1.RestartPolicyAlways, runsForKey, "1s"))[0]
	eventually(t, "pods run", func() error { return wantPhases(t, plane, c.node, append(pods, again), notPending) })

	// Killed twice: while the server goes away, and while it is away for longer.
	before := plane.mustPods(t, c.node)
	plane.down(t)
	ended := make(map[types.UID]bool) // pods of which the server can't know that they ended
	for uid, r := range c.reports() {
		if terminal(r.phase) {
			ended[uid] = true // maybe it knows
		}
	}
	unknown := 0
	for range 2 {
		goal := unknown + ends
		eventually(t, "pods end while the server is away", func() error {
			for _, pod := range before {
				if r := c.reports()[pod.UID]; terminal(r.phase) && !ended[pod.UID] {
					ended[pod.UID] = true
					unknown++
				}
			}
			if unknown < goal {
				return fmt.Errorf("%d ended", unknown)
			}
			return nil
		})
		c.kill(t)
		c.stored(t) // checks what was reported
		c.start(t)
	}
	c.kill(t)
	stored := c.stored(t)

	plane.up(t)
	live, events := plane.watch(t, c.node)
	var late []*v1.Pod
	for _, pod := range pods {
		if terminal(stored[pod.UID].Phase) && !terminal(live[pod.Name].Status.Phase) {
			late = append(late, pod)
		}
	}
	t.Logf("%d of %d pods ended without the server knowing", len(late), n)
	lives, told := restarts(stored[again.UID]), restarts(&live[again.Name].Status)
	t.Logf("%s was restarted %d times, of which the server knows %d", again.Name, lives, told)
	if len(late) < ends || lives-told < 2 {
		t.Fatalf("the server lacks the end of %d pods, want at least %d, and %d restarts, or nothing is shown", len(late), ends, lives-told)
	}

	earlier := len(plane.requests(t))
	c.start(t)
	eventually(t, "the server learns what was stored", func() error {
		live, err := plane.pods(t.Context(), c.node)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if diff := lost(stored[pod.UID], &live[pod.Name].Status); diff != "" {
				return fmt.Errorf("%s (-stored +server):\n%s", pod.Name, diff)
			}
		}
		return nil
	})
	for _, pod := range append(pods, again) {
		if got := c.creations(pod.UID); got != 1 {
			t.Errorf("%s was created %d times, want once", pod.Name, got)
		}
	}

	// Of the pod that has had many statuses only the newest was sent, and each end once:
	// also when the store has compared all pods with the server, every ten seconds.
	if got := nextRestarts(t, events, again.Name, told); got < lives {
		t.Errorf("%s: the server was sent restart %d, and %d was stored", again.Name, got, lives)
	}
	c.waitStored(t, 24) // twelve restarts
	sent := make(map[string]int)
	for _, r := range plane.requests(t)[earlier:] {
		if r.agent == storeAgent && r.what == "patch pods/status" && r.code == http.StatusOK {
			sent[r.name]++
		}
	}
	for _, pod := range late {
		if sent[pod.Name] != 1 {
			t.Errorf("the end of %s was sent %d times, want once", pod.Name, sent[pod.Name])
		}
	}
}

func restarts(status *v1.PodStatus) int32 { return status.ContainerStatuses[0].RestartCount }

// nextRestarts waits for a pod to have another number of restarts on the server than it
// was told of, and returns it.
func nextRestarts(t *testing.T, events <-chan watch.Event, name string, told int32) int32 {
	t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatal("the watch ended")
			}
			pod, ok := e.Object.(*v1.Pod)
			if ok && pod.Name == name && restarts(&pod.Status) != told {
				return restarts(&pod.Status)
			}
		case <-deadline:
			t.Fatalf("the server hears nothing of %s", name)
		}
	}
}

// lost compares what was stored at a kill with what the server has later. A pod that
// had not ended may have ended since, but in the same life.
func lost(stored, live *v1.PodStatus) string {
	if terminal(live.Phase) && !terminal(stored.Phase) {
		end := live.ContainerStatuses[0].State.Terminated
		return cmp.Diff(stored.ContainerStatuses[0].State.Running.StartedAt, end.StartedAt)
	}
	return cmp.Diff(stored, live, cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(v1.PodStatus{}, "ObservedGeneration"),
		cmpopts.IgnoreFields(v1.PodCondition{}, "ObservedGeneration", "LastProbeTime"),
		cmpopts.SortSlices(func(a, b v1.PodCondition) bool { return a.Type < b.Type }))
}

func notPending(phase v1.PodPhase) bool { return phase == v1.PodRunning || terminal(phase) }

// wantPhases wants each pod on the server to be in such a phase.
func wantPhases(t *testing.T, plane *controlPlane, node string, pods []*v1.Pod, want func(v1.PodPhase) bool) error {
	live, err := plane.pods(t.Context(), node)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if got := live[pod.Name]; got == nil || !want(got.Status.Phase) {
			return fmt.Errorf("%s: got %v", pod.Name, got)
		}
	}
	return nil
}

// testKillLoop kills the process at random times while pods are restarted all the time. Of
// what was reported as stored nothing is missing, and the server never goes back.
func testKillLoop(t *testing.T, plane *controlPlane) {
	const (
		n     = 8
		kills = 8
	)
	c := newChild(t, plane, "killloop")
	var pods []*v1.Pod
	for i := range n {
		pods = append(pods, newPod(fmt.Sprintf("loop-%d", i), v1.RestartPolicyAlways, runsForKey, "50ms", exitCodeKey, "1"))
	}
	pods = plane.create(t, c.node, pods...)
	served := make(map[string]int32) // restarts that the server has told of
	for kill := range kills {
		c.start(t)
		c.waitStored(t, 2*n)
		time.Sleep(rand.N(300 * time.Millisecond)) // to be somewhere else each time
		c.kill(t)
		c.stored(t)
		for name, pod := range plane.mustPods(t, c.node) {
			if len(pod.Status.ContainerStatuses) == 0 {
				continue
			}
			if got := pod.Status.ContainerStatuses[0].RestartCount; got < served[name] {
				t.Errorf("kill %d: %s went back from %d to %d restarts", kill, name, served[name], got)
			} else {
				served[name] = got
			}
		}
	}
	stored := c.stored(t)
	c.start(t)
	eventually(t, "the server has all restarts", func() error {
		live, err := plane.pods(t.Context(), c.node)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			got, want := live[pod.Name].Status.ContainerStatuses, stored[pod.UID].ContainerStatuses
			if len(got) == 0 || got[0].RestartCount < want[0].RestartCount {
				return fmt.Errorf("%s: got %v, want at least %d restarts", pod.Name, got, want[0].RestartCount)
			}
		}
		return nil
	})
	t.Logf("%d statuses were stored between %d kills", c.count(), kills)
	c.kill(t)
}

// testDeletion deletes pods while the process is dead. Their ends are on the server before
// they go, also of the one that the framework takes for ended, and deletes by itself.
func testDeletion(t *testing.T, plane *controlPlane) {
	c := newChild(t, plane, "deletion")
	c.start(t)
	pods := plane.create(t, c.node,
		newPod("deleted-running", v1.RestartPolicyAlways),
		newPod("deleted-done", v1.RestartPolicyNever, runsForKey, "1s"),
		newPod("deleted-restarting", v1.RestartPolicyAlways, runsForKey, "50ms"))
	eventually(t, "pods run and end", func() error {
		if err := wantPhases(t, plane, c.node, pods[:1], notPending); err != nil {
			return err
		}
		return wantPhases(t, plane, c.node, pods[1:2], terminal)
	})
	c.kill(t)
	eventually(t, "a kill between two lives of a pod", func() error {
		c.start(t)
		c.waitStored(t, 2)
		c.kill(t)
		live, err := plane.pods(t.Context(), c.node)
		if err != nil {
			return err
		}
		statuses := live["deleted-restarting"].Status.ContainerStatuses
		if len(statuses) == 0 || statuses[0].State.Terminated == nil {
			return fmt.Errorf("the server has %v", statuses)
		}
		return nil
	})

	_, events := plane.watch(t, c.node)
	for _, pod := range pods {
		if err := plane.client.CoreV1().Pods("default").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t)
	deadline := time.After(soon)
	last := make(map[string]v1.PodPhase)
	for gone := 0; gone < len(pods); {
		select {
		case e, ok := <-events:
			if !ok {
				t.Fatal("the watch ended")
			}
			pod := e.Object.(*v1.Pod)
			if e.Type != watch.Deleted {
				last[pod.Name] = pod.Status.Phase
				continue
			}
			gone++
			want := v1.PodFailed // stopped by the deletion
			if pod.Name == "deleted-done" {
				want = v1.PodSucceeded
			}
			if last[pod.Name] != want {
				t.Errorf("%s was deleted in phase %q, want %s", pod.Name, last[pod.Name], want)
			}
		case <-deadline:
			t.Fatalf("%d of %d pods are gone; last phases %v", gone, len(pods), last)
		}
	}
	c.kill(t)
}

// testRefused has a pod that can't be run say so.
func testRefused(t *testing.T, plane *controlPlane) {
	c := newChild(t, plane, "refused")
	c.start(t)
	pods := plane.create(t, c.node, newPod("refused", v1.RestartPolicyAlways, runsForKey, "soon"))
	eventually(t, "the pod is refused", func() error { return wantPhases(t, plane, c.node, pods, terminal) })
	if got := plane.mustPods(t, c.node)["refused"].Status.Reason; got != reasonRefused {
		t.Errorf("got reason %q, want %q", got, reasonRefused)
	}
}

// testTerminate ends the process as an operator would, with the server there and away.
func testTerminate(t *testing.T, plane *controlPlane) {
	c := newChild(t, plane, "terminate")
	c.start(t)
	pods := plane.create(t, c.node, newPod("terminate", v1.RestartPolicyAlways, runsForKey, "1s"))
	eventually(t, "the pod runs", func() error { return wantPhases(t, plane, c.node, pods, notPending) })
	c.terminate(t)
	plane.down(t)
	defer plane.up(t)
	c.start(t)
	c.waitStored(t, 1) // it goes on without the server
	c.terminate(t)
}

// checkWriters looks at who has written to pods: the store, and never the framework.
func checkWriters(t *testing.T, plane *controlPlane) {
	t.Helper()
	writes := make(map[string]int)
	for _, r := range plane.requests(t) {
		writes[r.agent+" "+r.what]++
		if strings.HasPrefix(r.agent, frameworkAgent) {
			t.Errorf("%s: %s %s, want the store to do it", r.agent, r.what, r.name)
		}
	}
	t.Log(writes)
	if writes[storeAgent+" patch pods/status"] == 0 {
		t.Error("the store has sent no status")
	}
}
