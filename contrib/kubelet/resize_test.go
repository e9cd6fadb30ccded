// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

func resizePending(s *v1.PodStatus) {
	condition(v1.PodCondition{
		Type: v1.PodResizePending, Status: v1.ConditionTrue, Reason: v1.PodReasonInfeasible, Message: "too big", ObservedGeneration: 3,
	})(s)
}

// list shows the resize conditions without times.
func list(w *world, uid types.UID) []string {
	var out []string
	for _, c := range w.GetPodResizeConditions(uid) {
		out = append(out, fmt.Sprintf("%s %s %q %d", c.Type, c.Reason, c.Message, c.ObservedGeneration))
	}
	return out
}

func TestResizeConditions(t *testing.T) {
	w := newWorld(t, pod())
	w.SetPodStatus(quiet, pod(), running())
	for i, want := range []bool{true, false, true, true} {
		reason := []string{"any", "any", "any", v1.PodReasonInfeasible}[i]
		if got := w.SetPodResizePendingCondition("uid-web", reason, "m", []int64{1, 1, 2, 2}[i]); got != want {
			t.Errorf("call %d: changed is %v, want %v", i, got, want)
		}
	}
	if w.IsPodResizeDeferred("uid-web") || !w.IsPodResizeInfeasible("uid-web") {
		t.Error("the pending resize isn't infeasible")
	}
	if got, changed := w.SetPodResizeInProgressCondition("uid-web", "", "", 5); got != 5 || !changed {
		t.Errorf("in progress: %d, %v", got, changed)
	}
	if got, changed := w.SetPodResizeInProgressCondition("uid-web", v1.PodReasonError, "e", 6); got != 5 || !changed {
		t.Errorf("in progress with an error: %d, %v; want the old generation", got, changed)
	}
	want := []string{`PodResizePending Infeasible "m" 2`, `PodResizeInProgress Error "e" 5`}
	if diff := cmp.Diff(want, list(w, "uid-web")); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	w.GetPodResizeConditions("uid-web")[0].Reason = "mine" // a copy (SEMANTICS 38)
	w.ClearPodResizePendingCondition("uid-web", metrics.DeferredResizeResolutionReverted)
	if got, cleared := w.ClearPodResizeInProgressCondition("uid-web"); got != 5 || !cleared {
		t.Errorf("cleared %d, %v", got, cleared)
	}
	if got, cleared := w.ClearPodResizeInProgressCondition("uid-web"); got != 0 || cleared {
		t.Errorf("cleared once more: %d, %v", got, cleared)
	}
	if got := list(w, "uid-web"); got != nil {
		t.Errorf("conditions are left: %q", got)
	}
	w.BackfillPodResizeConditions([]*v1.Pod{pod(with(resizePending)), pod(named("other"), with(resizePending))})
	if got := list(w, "uid-web"); got != nil {
		t.Errorf("the backfill brings back what was cleared: %q", got)
	}
	if diff := cmp.Diff([]string{`PodResizePending Infeasible "too big" 3`}, list(w, "uid-other")); diff != "" {
		t.Errorf("after the backfill (-want +got):\n%s", diff)
	}
}

// figures returns the kubelet's metrics of a name, as "labels value".
func figures(t *testing.T, name string) []string {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var parts []string
			for _, l := range m.GetLabel() {
				parts = append(parts, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out = append(out, strings.Join(append(parts, fmt.Sprint(value)), " "))
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	metrics.TerminatedContainersTotal.Reset()
	metrics.PodDeferredResizeDurationSeconds.Reset()
	vip := pod(named("vip"), func(p *v1.Pod) { p.Spec.Priority = new(int32(200_000)) })
	w := newWorld(t, pod(), vip)
	delivered := figures(t, "kubelet_pod_status_sync_duration_seconds")
	for _, p := range []*v1.Pod{pod(), vip} {
		w.SetPodStatus(quiet, p, running())
		w.SetPodResizePendingCondition(p.UID, v1.PodReasonDeferred, "", 1)
	}
	w.SetPodResizeInProgressCondition("uid-vip", "", "", 1)
	check := func(what, name string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, figures(t, name)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", what, name, diff)
		}
	}
	const (
		pending    = "kubelet_pod_pending_resizes"
		inProgress = "kubelet_pod_in_progress_resizes"
		deferred   = "kubelet_pod_deferred_resize_duration_seconds"
	)
	check("both wait", pending, "priority_bucket=high reason=deferred 1", "priority_bucket=normal reason=deferred 1")
	check("one is under way", inProgress, "1")

	w.restart()
	check("after a restart", pending, "priority_bucket=high reason=deferred 1", "priority_bucket=normal reason=deferred 1")
	w.ClearPodResizePendingCondition("uid-vip", metrics.DeferredResizeResolutionAccepted)
	check("one was accepted", pending, "priority_bucket=normal reason=deferred 1")
	check("one was accepted", deferred, "priority_bucket=high resolution=accepted 1")

	w.SetPodStatus(quiet, vip, running(containers(ended("app", 3), runs("side", true))))
	check("one ended", "kubelet_terminated_containers_total", "container_type=container exit_code=3 reason=Ended 1")

	w.settle()
	w.SetPodResizePendingCondition("uid-vip", v1.PodReasonDeferred, "", 2)
	w.ClearPodResizePendingCondition("uid-vip", metrics.DeferredResizeResolutionTerminated)
	check("one ended with its pod", deferred, "priority_bucket=high resolution=accepted 1", "priority_bucket=unknown resolution=terminated 1")
	w.RemoveOrphanedStatuses(quiet, nil)
	check("all are gone", pending)
	check("all are gone", inProgress, "0")
	check("all are gone", deferred, "priority_bucket=high resolution=accepted 1", "priority_bucket=unknown resolution=terminated 2")
	if got := figures(t, "kubelet_pod_status_sync_duration_seconds"); cmp.Equal(got, delivered) {
		t.Errorf("no delivery was measured: %q", got)
	}
}
