// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

const node = "node-1"

// cluster is a store with a running syncer and its API server, in a bubble.
type cluster struct {
	*store
	api  *fakeapi.Server
	stop func()
}

// inCluster runs a test with an API server that has the pods, as they are seen by
// it: with their status.
func inCluster(t *testing.T, test func(*testing.T, *cluster), pods []*v1.Pod, change ...func(*Options)) {
	synctest.Test(t, func(t *testing.T) {
		api, err := fakeapi.ListenInMemory(fakeapi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer api.Close()
		for _, p := range pods {
			p = p.DeepCopy()
			p.Spec.NodeName = node
			if _, err := api.Put(p); err != nil {
				t.Fatal(err)
			}
		}
		client, err := kubernetes.NewForConfig(api.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{api: api}
		c.store = open(t, append(change, func(o *Options) { o.Client, o.Node = client, node })...)
		c.run()
		defer func() { c.stop() }()
		test(t, c)
	})
}

func (c *cluster) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	m := c.Manager
	go func() { done <- m.Run(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("run: %v", err)
		}
	}
	synctest.Wait()
}

func (c *cluster) restart() {
	c.stop()
	c.reopen()
	c.api.ResetRequests()
	c.run()
}

// settle lets everything happen that is due within a second.
func (c *cluster) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (c *cluster) live(name string) *v1.Pod {
	c.t.Helper()
	p, ok := c.api.Pod("default", name)
	if !ok {
		c.t.Fatalf("the server has no pod %s", name)
	}
	return p
}

func (c *cluster) wantAcked(uid types.UID) {
	c.t.Helper()
	if e, ok := c.Entry(uid); !ok || e.Pending() {
		c.t.Errorf("entry %+v, want it acked", e)
	}
}

func (c *cluster) wantRequests(verb fakeapi.Verb, want int) {
	c.t.Helper()
	if got := c.api.Count(verb); got != want {
		c.t.Errorf("%d requests with %s, want %d", got, verb, want)
	}
}

// phases lists the phases that were written to a pod, one after the other.
func (c *cluster) phases(uid types.UID) []v1.PodPhase {
	var out []v1.PodPhase
	for _, h := range c.api.StatusHistory(uid) {
		out = append(out, h.Status.Phase)
	}
	return out
}

func TestSync_StatusReachesTheServerAndRestartIsSilent(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(pod(), runningReady())
		c.settle()
		if got := c.live("web-0").Status; got.Phase != v1.PodRunning || conditionOf(t, &got, v1.PodReady).Status != v1.ConditionTrue {
			t.Errorf("the server has %+v", got)
		}
		c.wantAcked("uid-a")
		// C11, C38: nothing to say after a restart, and pods are ready all the time.
		c.restart()
		c.wantAcked("uid-a")
		time.Sleep(15 * time.Second)
		c.wantRequests(fakeapi.Patch, 0)
		c.wantRequests(fakeapi.Get, 0)
		c.wantRequests(fakeapi.List, 1)
		if st := c.Status(); !st.Syncing || !st.LiveSynced || st.Pending != 0 || st.Failing != 0 {
			t.Errorf("status %+v", st)
		}
	}, []*v1.Pod{pod()})
}

// C01: Failed never becomes Succeeded.
func TestC01_TheServerNeverSeesAnotherPhaseAfterFailed(t *testing.T) {
	p := pod(never, oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(p, status(v1.PodRunning, running("app", appID, true)))
		c.set(p, status(v1.PodFailed, terminated("app", 1, "Error")))
		c.settle()
		for _, refused := range []v1.PodStatus{
			status(v1.PodSucceeded, terminated("app", 0, "Completed")), status(v1.PodRunning, running("app", appID, true)),
		} {
			if _, err := c.SetPodStatus(t.Context(), p, refused); err == nil {
				t.Error("an illegal update was accepted")
			}
			c.settle()
		}
		got := c.phases("uid-a")
		if len(got) == 0 || got[len(got)-1] != v1.PodFailed {
			t.Errorf("the server saw %v, want it to end in Failed", got)
		}
		for _, phase := range got[:len(got)-1] {
			if phase != v1.PodRunning {
				t.Errorf("the server saw %v", got)
			}
		}
	}, []*v1.Pod{p})
}

// C06: a terminal phase is never Ready.
func TestC06_ATerminalPhaseIsNeverReady(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(pod(), runningReady())
		c.settle()
		time.Sleep(time.Minute)
		called := time.Now().Truncate(time.Second)
		failed := runningReady(reason("Evicted"))
		failed.Phase = v1.PodFailed
		c.set(pod(), failed)
		c.settle()
		live := c.live("web-0").Status
		for _, typ := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
			got := conditionOf(t, &live, typ)
			if got.Status != v1.ConditionFalse || got.LastTransitionTime.Time.Before(called) {
				t.Errorf("%s is %s since %v, want False since %v", typ, got.Status, got.LastTransitionTime, called)
			}
		}
		if live.Phase != v1.PodFailed || live.Reason != "Evicted" {
			t.Errorf("the server has %s, %s", live.Phase, live.Reason)
		}
		c.wantAcked("uid-a")
	}, []*v1.Pod{pod()})
}

// C10: a new message is a change.
func TestC10_NewMessageReachesTheServer(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		unready := func(m string) v1.PodStatus {
			return status(v1.PodRunning, condition(v1.PodReady, v1.ConditionFalse, message(m)))
		}
		c.set(pod(), unready("containers with unready status: [app side]"))
		c.settle()
		live := c.live("web-0").Status
		before := conditionOf(t, &live, v1.PodReady)
		time.Sleep(time.Minute)
		c.set(pod(), unready("containers with unready status: [side]"))
		c.settle()
		live = c.live("web-0").Status
		after := conditionOf(t, &live, v1.PodReady)
		if after.Message != "containers with unready status: [side]" || !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
			t.Errorf("the server has %+v, want the new message and the old time of %+v", after, before)
		}
		c.wantAcked("uid-a")
	}, []*v1.Pod{pod()})
}

// C15: times survive a round trip.
func TestC15_OnePatchInAll(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		given := runningReady()
		for i := range given.Conditions {
			given.Conditions[i].LastProbeTime.Time = time.Date(2026, 1, 1, 12, 0, 0, 987654321, time.UTC)
		}
		c.set(pod(), given)
		c.settle()
		if ch, err := c.SetPodStatus(t.Context(), pod(), given); err != nil || ch.Changed {
			t.Errorf("the same input again: %+v, %v", ch, err)
		}
		time.Sleep(time.Minute)
		c.wantRequests(fakeapi.Patch, 1)
		c.restart()
		time.Sleep(time.Minute)
		c.wantRequests(fakeapi.Patch, 0)
		c.wantVersion("uid-a", 1)
	}, []*v1.Pod{pod()})
}

// C16: one container ends while the pod terminates.
func TestC16_OneContainerEndsWhileThePodTerminates(t *testing.T) {
	dying := pod(never, deleted)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(dying, runningReady())
		c.settle()
		c.set(dying, runningReady(terminated("app", 0, "Completed")))
		c.settle()
		if live := c.live("web-0").Status; stateOf(t, &live, "app").Terminated == nil || stateOf(t, &live, "side").Running == nil {
			t.Errorf("the server has %+v", live.ContainerStatuses)
		}
		c.wantRequests(fakeapi.Delete, 0)
		time.Sleep(3 * time.Second)
		ended := runningReady(terminated("app", 0, "Completed"), terminated("side", 0, "Completed"))
		ended.Phase = v1.PodSucceeded
		c.set(dying, ended)
		c.settle()
		c.wantRequests(fakeapi.Delete, 0) // not finished yet
		if _, err := c.FinishPod(t.Context(), "uid-a"); err != nil {
			t.Fatal(err)
		}
		c.settle()
		if _, ok := c.api.Pod("default", "web-0"); ok {
			t.Error("the server still has the pod")
		}
		c.wantRequests(fakeapi.Delete, 1)
		for _, r := range c.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}}) {
			if !bytes.Contains(r.Body, []byte("uid-a")) {
				t.Errorf("DELETE without precondition: %q", r.Body)
			}
		}
		if _, ok := c.GetPodStatus("uid-a"); ok {
			t.Error("semantics 97: the status is still there")
		}
	}, []*v1.Pod{dying}, func(o *Options) { o.Runtime = runtimeFunc(func() bool { return false }) })
}

type runtimeFunc func() bool

func (f runtimeFunc) PodCouldHaveRunningContainers(*v1.Pod) bool { return f() }

func TestSemantics82_WakeSendsAHeldPhase(t *testing.T) {
	var mayRun atomic.Bool
	mayRun.Store(true)
	p := pod(never, oneContainer)
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(p, status(v1.PodRunning, running("app", appID, true)))
		c.settle()
		c.set(p, status(v1.PodFailed, terminated("app", 1, "Error")))
		c.settle()
		if got := c.live("web-0").Status; got.Phase != v1.PodRunning || got.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("the server has %+v, want Running with an ended container", got)
		}
		mayRun.Store(false)
		c.Wake("uid-a")
		synctest.Wait()
		if got := c.live("web-0").Status.Phase; got != v1.PodFailed {
			t.Errorf("phase %s, want Failed at once", got)
		}
	}, []*v1.Pod{p}, func(o *Options) { o.Runtime = runtimeFunc(mayRun.Load) })
}

// TestSync_StaticPod: the status goes to the mirror pod, under its UID.
func TestSync_StaticPod(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.set(pod(staticPod), runningReady())
		c.settle()
		if got := c.live("web-0"); got.UID != "mirror" || got.Status.Phase != v1.PodRunning {
			t.Errorf("the server has %s %s", got.UID, got.Status.Phase)
		}
		if e, _ := c.Entry("mirror"); e == nil || e.UID != "source" || e.AckedUID != "mirror" || e.Pending() {
			t.Errorf("entry %+v, want the source's, acked for the mirror", e)
		}
		c.restart()
		c.settle()
		c.wantRequests(fakeapi.Patch, 0)
	}, []*v1.Pod{pod(mirrorPod("mirror"))})
}

func TestSyncOnce_WithoutRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.stop()
		c.stop = func() {}
		c.reopen()
		c.set(pod(), runningReady())
		if err := c.SyncOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.live("web-0").Status.Phase; got != v1.PodRunning {
			t.Errorf("phase %s, want Running", got)
		}
		c.wantAcked("uid-a")
		c.reopen()
		c.wantAcked("uid-a")
	}, []*v1.Pod{pod()})
}

func TestStatus_NamesFailingPods(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Code: 422, Message: "refused by test"})
		c.set(pod(), runningReady())
		c.settle()
		st := c.Status()
		if st.Failing != 1 || len(st.FailingPods) != 1 || st.LastSyncError == "" || st.LastSyncTime == nil {
			t.Fatalf("status %+v, want one failing pod and the last error", st)
		}
		if f := st.FailingPods[0]; f.Name != "web-0" || f.UID != "uid-a" || f.Version != 1 || f.Code != 422 || f.Reason == "" {
			t.Errorf("failing pod %+v", f)
		}
		if len(c.Failing()) != 1 {
			t.Errorf("failing %v", c.Failing())
		}
	}, []*v1.Pod{pod()})
}

// TestSyncerView_Acks: what the syncer records is seen at once and after a restart.
func TestSyncerView_Acks(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	s.set(pod(), runningReady(text("x")))
	want := func(acked journal.Version, live types.UID) {
		t.Helper()
		for range 2 {
			if e, _ := s.Entry("uid-a"); e.Acked != acked || e.AckedUID != live {
				t.Errorf("acked %d of %q, want %d of %q", e.Acked, e.AckedUID, acked, live)
			}
			if err := (syncerView{s.Manager}).Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.reopen()
		}
	}
	want(0, "")
	syncerView{s.Manager}.Ack("uid-a", "live", 1)
	want(1, "live")
	syncerView{s.Manager}.Ack("uid-a", "live", 2)
	want(2, "live")
	syncerView{s.Manager}.ClearAck("uid-a")
	want(0, "")
	if err := (syncerView{s.Manager}).Drop(t.Context(), "uid-a", journal.ReasonRecreated); err != nil {
		t.Fatal(err)
	}
	s.wantKinds("set/set", "set/set", "removed/recreated")
}
