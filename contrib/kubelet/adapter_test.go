// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/contrib/kubelet"
	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

func TestSetPodStatus_Patches(t *testing.T) {
	w := newWorld(t, pod())
	given := running(condition(v1.PodCondition{Type: "example.com/mine", Status: v1.ConditionTrue}))
	stored, changed := w.SetPodStatus(quiet, pod(), given)
	if !changed || stored.StartTime.IsZero() || stored.ObservedGeneration != 1 {
		t.Errorf("changed %v, start time %v, generation %d; want a new version with both", changed, stored.StartTime, stored.ObservedGeneration)
	}
	live := w.live("web", inPhase(v1.PodRunning))
	if got := conditionOf(&live.Status, v1.PodReady).Status; got != v1.ConditionTrue || len(live.Status.ContainerStatuses) != 2 {
		t.Errorf("the server has Ready=%q and %d containers", got, len(live.Status.ContainerStatuses))
	}
	if got := conditionOf(&live.Status, "example.com/mine").Status; got != "" {
		t.Errorf("a condition that isn't ours was sent: %q", got)
	}
	patches := w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}})
	if len(patches) != 1 || patches[0].Subresource != "status" || !bytes.Contains(patches[0].Body, []byte(`"uid":"uid-web"`)) {
		t.Fatalf("patches are %+v, want one of the status with the UID", patches)
	}

	again, changed := w.SetPodStatus(quiet, pod(), given)
	if diff := cmp.Diff(stored, again); changed || diff != "" {
		t.Errorf("the same status again: changed %v, (-first +second):\n%s", changed, diff)
	}
	again.ContainerStatuses[0].Ready = false // a copy, not the cache (SEMANTICS 5)
	if got, ok := w.GetPodStatus("uid-web"); !ok || !got.ContainerStatuses[0].Ready {
		t.Error("the stored status changed with the one that was returned")
	}
	w.settle()
	if n := w.api.Count(fakeapi.Patch); n != 1 {
		t.Errorf("%d patches, want 1", n)
	}
	// It may be recorded a moment after the answer.
	w.eventually("start-up helper is told", func() bool { return len(w.recorded()) > 0 })
	if got := w.recorded()[0]; got.UID != "uid-web" || got.Status.Phase != v1.PodRunning || len(got.Spec.Containers) != 2 {
		t.Errorf("recorded pod has UID %s, phase %s, %d containers", got.UID, got.Status.Phase, len(got.Spec.Containers))
	}
}

func TestContainerCalls(t *testing.T) {
	w := newWorld(t, pod())
	if w.SetContainerReadiness(quiet, "uid-web", id("app"), true); w.api.Count(fakeapi.Patch) != 0 {
		t.Error("readiness before the first status was sent")
	}
	w.SetPodStatus(quiet, pod(), running(containers(runs("app", true), runs("side", false))))
	w.SetContainerReadiness(quiet, "uid-web", id("side"), true)
	got, _ := w.GetPodStatus("uid-web")
	if conditionOf(&got, v1.PodReady).Status != v1.ConditionTrue {
		t.Error("pod with ready containers isn't ready")
	}
	w.SetContainerReadiness(quiet, "uid-web", id("app"), false)
	w.SetContainerStartup(quiet, "uid-web", id("app"), false)
	live := w.live("web", func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && !*p.Status.ContainerStatuses[0].Started
	})
	for _, c := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		if got := conditionOf(&live.Status, c); got.Status != v1.ConditionFalse || got.Reason != "ContainersNotReady" {
			t.Errorf("%s is %+v, want false as a container isn't ready", c, got)
		}
	}
	before, _ := w.Store().Entry("uid-web")
	w.SetContainerReadiness(quiet, "uid-web", id("none"), true)
	w.SetContainerReadiness(quiet, "none", id("app"), true)
	w.SetContainerReadiness(quiet, "uid-web", id("app"), false)
	if after, _ := w.Store().Entry("uid-web"); after.Version != before.Version {
		t.Errorf("version %d became %d without a change", before.Version, after.Version)
	}
}

func TestSetPodVolumeHealth(t *testing.T) {
	w := newWorld(t, pod(volume("data")))
	bad := []v1.VolumeHealthCondition{{Status: "Inaccessible", Reason: "Gone", Message: "gone"}}
	if w.SetPodVolumeHealth(quiet, "uid-web", "data", bad) {
		t.Error("changed before the first status")
	}
	w.SetPodStatus(quiet, pod(volume("data")), running())
	if !w.SetPodVolumeHealth(quiet, "uid-web", "data", bad) {
		t.Error("no change by a new condition")
	}
	if w.SetPodVolumeHealth(quiet, "uid-web", "data", bad) {
		t.Error("a change by the same condition")
	}
	w.settle()
	live, _ := w.api.Pod(namespace, "web")
	if len(live.Status.VolumeHealth) != 1 || len(live.Status.VolumeHealth[0].HealthConditions) != 1 {
		t.Errorf("the server has volume health %+v", live.Status.VolumeHealth)
	}
}

func TestTerminatePod_DeletesWhenNothingRuns(t *testing.T) {
	w := newWorld(t, pod(deleted))
	w.SetPodStatus(quiet, pod(deleted), running())
	w.settle()
	w.pods.RemovePod(pod(deleted)) // as a kubelet does before the end
	w.TerminatePod(quiet, pod(deleted))
	w.settle()
	live, ok := w.api.Pod(namespace, "web")
	if !ok || live.Status.Phase != v1.PodRunning || live.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Fatalf("while containers may run: found %v, %+v; want ended containers and the phase held back", ok, live.Status)
	}
	w.end()
	w.live("web", gone)
	deletes := w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Delete}})
	if len(deletes) != 1 {
		t.Fatalf("%d deletes, want 1", len(deletes))
	}
	var options metav1.DeleteOptions
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(deletes[0].Body, nil, &options); err != nil {
		t.Fatal(err)
	}
	if *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != "uid-web" {
		t.Errorf("delete options are %+v, want grace 0 and the UID", options)
	}
	w.eventually("start-up record is dropped", func() bool { return w.forgot("uid-web") })
	if s, ok := w.GetPodStatus("uid-web"); ok {
		t.Errorf("the status is still there: %+v", s)
	}
}

func TestTerminatePod_KeepsAPodThatIsNotDeleted(t *testing.T) {
	w := newWorld(t, pod())
	w.end()
	w.SetPodStatus(quiet, pod(), running())
	w.TerminatePod(quiet, pod())
	w.live("web", inPhase(v1.PodFailed))
	w.settle()
	if n := w.api.Count(fakeapi.Delete); n != 0 {
		t.Errorf("%d deletes of a pod without deletion timestamp", n)
	}
}

func TestStaticPod(t *testing.T) {
	w := newWorld(t)
	w.pods.AddPod(pod(staticPod))
	w.SetPodStatus(quiet, pod(staticPod), running())
	w.settle()
	if n := w.api.Count(fakeapi.Patch); n != 0 {
		t.Errorf("%d patches for a static pod without mirror", n)
	}
	w.pods.AddPod(pod(mirrorPod))
	w.put(pod(mirrorPod))
	live := w.live("web", inPhase(v1.PodRunning))
	if live.UID != "mirror" {
		t.Errorf("the status went to %s", live.UID)
	}
	if got, ok := w.GetPodStatus("mirror"); !ok || got.Phase != v1.PodRunning {
		t.Errorf("by the mirror's UID: %v, %q", ok, got.Phase)
	}
	w.SetContainerReadiness(quiet, "mirror", id("app"), false) // SEMANTICS 6
	if got, _ := w.GetPodStatus("source"); !got.ContainerStatuses[0].Ready {
		t.Error("readiness by the mirror's UID was stored")
	}
	w.eventually("start-up helper is told of the mirror", func() bool {
		return slices.ContainsFunc(w.recorded(), func(p *v1.Pod) bool { return p.UID == "mirror" })
	})
	w.end()
	w.TerminatePod(quiet, pod(staticPod))
	w.settle()
	live, ok := w.api.Pod(namespace, "web")
	if !ok || live.Status.Phase != v1.PodRunning || live.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("found %v, %+v; want ended containers, the phase kept and the mirror left", ok, live.Status)
	}
}

func TestRestart(t *testing.T) {
	w := newWorld(t, pod(), pod(named("other")))
	w.SetPodStatus(quiet, pod(named("other")), running())
	given := running(containers(runs("app", false), runs("side", false)))
	w.SetPodStatus(quiet, pod(), given)
	w.SetContainerReadiness(quiet, "uid-web", id("app"), true)
	w.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "no room", 1)
	w.settle()
	want, _ := w.GetPodStatus("uid-web")
	before, _ := w.Store().Entry("uid-web")
	w.api.ResetRequests()
	told := len(w.recorded())

	w.restart()
	w.settle()
	got, ok := w.GetPodStatus("uid-web")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("status after the restart (-want +got):\n%s", diff)
	}
	if !got.ContainerStatuses[0].Ready || !w.IsPodResizeDeferred("uid-web") {
		t.Error("readiness or the pending resize is lost")
	}
	if n := w.api.Count(fakeapi.Get, fakeapi.Patch); n != 0 {
		t.Errorf("%d requests after the restart, want none", n)
	}
	w.SetContainerReadiness(quiet, "uid-web", id("side"), true)
	if after, _ := w.Store().Entry("uid-web"); after.Version != before.Version+1 {
		t.Errorf("version %d follows %d", after.Version, before.Version)
	}
	w.live("web", func(p *v1.Pod) bool { return conditionOf(&p.Status, v1.PodReady).Status == v1.ConditionTrue })
	w.eventually("start-up helper is told", func() bool { return len(w.recorded()) > told })
	for _, p := range w.recorded()[told:] {
		if p.UID != "uid-web" {
			t.Errorf("start-up helper is told of %s, which did not change", p.UID)
		}
	}
}

func TestRemoveOrphanedStatuses(t *testing.T) {
	var all []*v1.Pod
	for _, n := range []string{"a", "b", "c"} {
		all = append(all, pod(named(n)))
	}
	w := newWorld(t, all...)
	for _, p := range all {
		w.SetPodStatus(quiet, p, running())
		w.SetPodResizePendingCondition(p.UID, v1.PodReasonDeferred, "no room", 1)
	}
	// Keys count, values don't, as in the stock manager.
	w.RemoveOrphanedStatuses(quiet, map[types.UID]bool{"uid-a": true, "uid-b": false})
	for uid, want := range map[types.UID]bool{"uid-a": true, "uid-b": true, "uid-c": false} {
		if _, ok := w.GetPodStatus(uid); ok != want || w.IsPodResizeDeferred(uid) != want {
			t.Errorf("%s: status %v, resize %v; want %v", uid, ok, w.IsPodResizeDeferred(uid), want)
		}
		if w.forgot(uid) == want {
			t.Errorf("%s: start-up record dropped is %v", uid, !want)
		}
	}
}

func TestRefusals_AreLogged(t *testing.T) {
	w := newWorld(t, pod(restart(v1.RestartPolicyNever)))
	var log lines
	logger := log.logger()
	w.SetContainerReadiness(logger, "none", id("app"), true)
	w.SetContainerReadiness(logger, "uid-web", id("app"), true)
	want, _ := w.SetPodStatus(logger, pod(restart(v1.RestartPolicyNever)), running(containers(ended("app", 1), runs("side", true))))
	w.SetContainerStartup(logger, "uid-web", id("none"), true)
	w.SetContainerReadiness(logger, "uid-web", id("side"), true)
	got, changed := w.SetPodStatus(logger, pod(restart(v1.RestartPolicyNever)), running())
	if diff := cmp.Diff(want, got); changed || diff != "" {
		t.Errorf("a refused status: changed %v, (-stored before +returned):\n%s", changed, diff)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.SetContainerReadiness(logger, "uid-web", id("side"), false)
	w.TerminatePod(logger, pod())
	w.RemoveOrphanedStatuses(logger, nil)
	w.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "", 1)
	w.BackfillPodResizeConditions([]*v1.Pod{pod(with(resizePending))})
	w.Start(klog.NewContext(t.Context(), logger))

	for _, line := range [][]string{
		{`"level"=4`, `"podUID"="none"`, `"outcome"="unknown pod"`},
		{`"level"=0`, `"podUID"="uid-web"`, `"containerID"="containerd://app"`, `"outcome"="no status yet"`},
		{`"level"=0`, `"change"="startup"`, `"containerID"="containerd://none"`, `"outcome"="unknown container"`},
		{`"level"=4`, `"containerID"="containerd://side"`, `"outcome"="unchanged"`},
		{`"error"="status of pod default/web`, `container \"app\"`, `"pod"={"name"="web" "namespace"="default"}`},
		{`"error"="journal is closed"`, `"change"="readiness"`, `"outcome"="none"`},
		{`"error"=`, "End of pod was not stored", "closed"},
		{`"error"=`, "Orphaned pod statuses were not removed", "closed"},
		{`"level"=0`, "not starting it"},
	} {
		if !log.has(line...) {
			t.Errorf("no line with %q in\n%q", line, log.all)
		}
	}
	if !w.log.has(`"error"=`, "Resize condition was not stored") || !w.log.has(`"error"=`, "Resize conditions of pods were not stored") {
		t.Errorf("no lines about resizes in\n%q", w.log.all)
	}
}

// subscriber writes down what it is told.
type subscriber struct {
	told []string
	last *v1.Pod
}

func (s *subscriber) OnPodUpdated(_ klog.Logger, p *v1.Pod, st v1.PodStatus, added bool) {
	word := "updated"
	if added {
		word = "added"
	}
	s.told, s.last = append(s.told, word+" "+string(p.UID)+" "+string(st.Phase)), p
}

func (s *subscriber) OnPodRemoved(_ klog.Logger, p *v1.Pod) {
	s.told, s.last = append(s.told, "removed "+string(p.UID)+" "+string(p.Status.Phase)), p
}

var _ kubestatus.PodUpdateNotifier = (*subscriber)(nil)

func TestNotifiers(t *testing.T) {
	w := newWorld(t, pod())
	var s subscriber
	w.AddPodUpdateNotifier(&s)
	w.SetPodStatus(quiet, pod(), status(v1.PodPending))
	w.SetPodStatus(quiet, pod(), status(v1.PodPending))
	w.SetPodStatus(quiet, pod(), running())
	w.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "no room", 1) // not in the status: nobody is told
	w.SetContainerReadiness(quiet, "uid-web", id("app"), false)
	w.restart()
	w.AddPodUpdateNotifier(&s)
	w.SetPodResizeInProgressCondition("uid-web", "", "", 1)
	w.SetPodStatus(quiet, pod(deleted), running()) // forced
	w.SetPodStatus(quiet, pod(deleted), running()) // forced, though nothing changed
	w.pods.RemovePod(pod())
	w.TerminatePod(quiet, pod(deleted))
	want := []string{
		"added uid-web Pending", "updated uid-web Running", "updated uid-web Running",
		"updated uid-web Running", "updated uid-web Running", "removed uid-web Failed",
	}
	if diff := cmp.Diff(want, s.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if s.last.DeletionTimestamp == nil || len(s.last.Spec.Containers) != 2 {
		t.Errorf("the last pod is %+v, want the one that was passed in", s.last)
	}
}

// counts is an observer that counts its calls.
type counts struct{ requests, delivered, circuits atomic.Int32 }

func (c *counts) Request(string, string, time.Duration) { c.requests.Add(1) }
func (c *counts) Delivered(types.UID, time.Duration)    { c.delivered.Add(1) }
func (c *counts) Circuit(bool)                          { c.circuits.Add(1) }

func TestStoreHooks_AreCalledToo(t *testing.T) {
	w := newWorld(t, pod())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	var c counts
	w.opts.Store.Sync.Observer = &c
	w.opts.Store.Hooks = manager.Hooks{
		Notify:              func(n manager.Notification) { got = append(got, string(n.Kind)) },
		ContainerTerminated: func(_ types.UID, e podstatus.Termination) { got = append(got, e.Container) },
		ResizeEnded:         func(_ types.UID, o manager.ResizeOutcome, _ time.Duration) { got = append(got, string(o)) },
	}
	w.open()
	w.SetPodStatus(quiet, pod(), running(containers(ended("app", 1), runs("side", true))))
	w.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "", 1)
	w.ClearPodResizePendingCondition("uid-web", metrics.DeferredResizeResolutionReverted)
	want := []string{"app", "updated", "reverted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	w.settle()
	w.eventually("observer is told", func() bool { return c.requests.Load() > 0 && c.delivered.Load() > 0 })
	w.api.NetworkDown()
	w.SetContainerReadiness(quiet, "uid-web", id("side"), false)
	w.eventually("observer is told of the circuit", func() bool { return c.circuits.Load() > 0 })
}

func TestNotifiers_Finished(t *testing.T) {
	w := newWorld(t, pod())
	var a, b subscriber
	w.AddPodUpdateNotifier(&a)
	w.AddPodUpdateNotifier(&b)
	w.SetPodStatus(quiet, pod(), running())
	if _, err := w.Store().FinishPod(t.Context(), "uid-web"); err != nil { // the status is the same
		t.Fatal(err)
	}
	want := []string{"added uid-web Running", "removed uid-web Running"}
	for _, s := range []subscriber{a, b} {
		if diff := cmp.Diff(want, s.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	}
}

func TestStart_WithoutClient(t *testing.T) {
	w := &world{t: t, pods: kubepod.NewBasicPodManager()}
	w.opts = kubelet.Options{
		Store: manager.Options{Path: t.TempDir() + "/journal.db"}, Pods: w.pods, DeletionSafety: &w.host, Logger: w.log.logger(),
	}
	w.open()
	if !w.log.has("no client") {
		t.Errorf("no line about the missing client in %q", w.log.all)
	}
	w.Start(klog.NewContext(t.Context(), w.log.logger()))
	if !w.log.has("was started before") {
		t.Errorf("no line about the second start in %q", w.log.all)
	}
	w.pods.AddPod(pod())
	if _, changed := w.SetPodStatus(quiet, pod(), running()); !changed {
		t.Error("the status was not stored")
	}
	w.RemoveOrphanedStatuses(quiet, nil) // without a start-up helper
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("contrib/kubelet.(*Manager).Start")) {
		t.Errorf("goroutines are left after Close:\n%s", stacks)
	}
	if w.log.has("Status manager stopped") {
		t.Errorf("a clean end is logged as an error: %q", w.log.all)
	}
}

// holding is an observer that holds up a request.
type holding struct {
	counts
	entered, leave chan struct{}
}

func (g *holding) Request(string, string, time.Duration) {
	close(g.entered)
	<-g.leave
}

func TestClose_Joins(t *testing.T) {
	w := newWorld(t, pod())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	held := &holding{entered: make(chan struct{}), leave: make(chan struct{})}
	w.opts.Store.Sync.Observer = held
	w.open()
	w.SetPodStatus(quiet, pod(), running())
	<-held.entered
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while a request was under way")
	case <-time.After(50 * time.Millisecond):
	}
	close(held.leave)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestStart_AfterClose(t *testing.T) {
	var log lines
	m, err := kubelet.New(kubelet.Options{
		Store: manager.Options{Path: t.TempDir() + "/journal.db"}, Pods: kubepod.NewBasicPodManager(), DeletionSafety: &host{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m.Start(klog.NewContext(t.Context(), log.logger())); !log.has("is closed, not starting it") {
		t.Errorf("no line about the closed manager in %q", log.all)
	}
}

func TestNew_Invalid(t *testing.T) {
	pods, h := kubepod.NewBasicPodManager(), &host{}
	good := kubelet.Options{Store: manager.Options{Path: t.TempDir() + "/journal.db"}, Pods: pods, DeletionSafety: h}
	tests := []struct {
		field  string
		change func(*kubelet.Options)
	}{
		{"Path", func(o *kubelet.Options) { o.Store.Path = "" }},
		{"Pods", func(o *kubelet.Options) { o.Pods = nil }},
		{"DeletionSafety", func(o *kubelet.Options) { o.DeletionSafety = nil }},
		{"Store.Runtime", func(o *kubelet.Options) { o.Store.Runtime = h }},
	}
	for _, tt := range tests {
		t.Run(tt.field, func(t *testing.T) {
			o := good
			tt.change(&o)
			_, err := kubelet.New(o)
			if invalid, ok := errors.AsType[*manager.InvalidError](err); !ok || invalid.Field != tt.field {
				t.Errorf("error %v, want an *InvalidError about %s", err, tt.field)
			}
		})
	}
}
