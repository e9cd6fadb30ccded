// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// difference is a sequence of calls after which the two differ on purpose.
type difference struct {
	name        string // with the rule that wants it
	pods        []*v1.Pod
	steps       []func(*side)
	look        func(*side) string
	stock, ours string
}

// TestDifferences holds what the stock manager does otherwise, so that nobody has
// to find out: when a case fails for the stock manager, it has caught up.
func TestDifferences(t *testing.T) {
	strict := func(p *v1.Pod) { p.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyNever) }
	never := restart(v1.RestartPolicyNever)
	restarted := waits("app")
	restarted.LastTerminationState = ended("app", 3).State
	unclassed := func(s *v1.PodStatus) { s.QOSClass = "" }
	tests := []difference{
		{
			name: "5 returned statuses are copies", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running()), func(s *side) {
				st, _ := s.GetPodStatus("uid-web")
				st.ContainerStatuses[0].Ready = false
			}},
			look: func(s *side) string {
				st, _ := s.GetPodStatus("uid-web")
				return fmt.Sprint(st.ContainerStatuses[0].Ready)
			},
			stock: "false", ours: "true",
		},
		{
			name: "15 a terminal phase is final", pods: []*v1.Pod{pod()},
			steps: []func(*side){(*side).end, setting(pod(), running(phase(v1.PodFailed))), setting(pod(), running())},
			look:  livePhase, stock: "Running", ours: "Failed",
		},
		{
			name: "80a so is the server's", pods: []*v1.Pod{pod(with(phase(v1.PodFailed)))},
			steps: []func(*side){setting(pod(), running())},
			look:  livePhase, stock: "Running", ours: "Failed",
		},
		{
			name: "27 volume health in whole seconds", pods: []*v1.Pod{pod(volume("v"))},
			steps: []func(*side){setting(pod(volume("v")), running()), health("v", "Degraded", "R")},
			look: func(s *side) string {
				st, _ := s.GetPodStatus("uid-web")
				return fmt.Sprint(st.VolumeHealth[0].LastTransitionTime.Nanosecond() == 0)
			},
			stock: "false", ours: "true",
		},
		{
			name: "36 slots that are filled win over a backfill", pods: []*v1.Pod{pod(with(resizePending))},
			steps: []func(*side){setting(pod(), running()), func(s *side) {
				s.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "", 4)
				p, _ := s.api.Pod(namespace, "web")
				resizePending(&p.Status)
				s.BackfillPodResizeConditions([]*v1.Pod{p})
			}},
			look:  func(s *side) string { return s.GetPodResizeConditions("uid-web")[0].Reason },
			stock: "Infeasible", ours: "Deferred",
		},
		{
			name: "36 a slot that was cleared stays empty", pods: []*v1.Pod{pod(with(resizePending))},
			steps: []func(*side){setting(pod(), running()), func(s *side) {
				s.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "", 4)
				s.ClearPodResizePendingCondition("uid-web", metrics.DeferredResizeResolutionAccepted)
				p, _ := s.api.Pod(namespace, "web")
				resizePending(&p.Status)
				s.BackfillPodResizeConditions([]*v1.Pod{p})
			}},
			look:  func(s *side) string { return fmt.Sprint(len(s.GetPodResizeConditions("uid-web"))) },
			stock: "1", ours: "0",
		},
		{
			name: "37 98 slots of an orphan that had no status", pods: []*v1.Pod{pod()},
			steps: []func(*side){func(s *side) {
				s.SetPodResizePendingCondition("uid-web", v1.PodReasonDeferred, "", 4)
				s.RemoveOrphanedStatuses(quiet, map[types.UID]bool{})
			}},
			look:  func(s *side) string { return fmt.Sprint(len(s.GetPodResizeConditions("uid-web"))) },
			stock: "1", ours: "0",
		},
		{
			name: "46 a known exit code stays", pods: []*v1.Pod{pod()},
			steps: []func(*side){(*side).end, setting(pod(), running(containers(restarted, runs("side", true)))), terminating(pod())},
			look: func(s *side) string {
				p, _ := s.api.Pod(namespace, "web")
				return fmt.Sprint(p.Status.ContainerStatuses[0].State.Terminated.ExitCode)
			},
			stock: "137", ours: "3",
		},
		{
			name: "48 the end of a pod is not lost", pods: []*v1.Pod{pod(never, deleted)},
			steps: []func(*side){(*side).end,
				setting(pod(never, initContainers("setup")), running(inits(ended("setup", 0)))), terminating(pod(never, deleted)),
			},
			look: requests(fakeapi.Delete), stock: "", ours: "DELETE 200",
		},
		{
			name: "63 messages are cut between runes", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running(containers(saying(ended("app", 1), "x"+strings.Repeat("é", 6000)))))},
			look: func(s *side) string {
				st, _ := s.GetPodStatus("uid-web")
				m := st.ContainerStatuses[0].State.Terminated.Message
				return fmt.Sprint(len(m), utf8.ValidString(m))
			},
			stock: "6144 false", ours: "6143 true",
		},
		{
			name: "70 as strict as the server", pods: []*v1.Pod{pod(strict)},
			steps: []func(*side){
				setting(pod(strict), running(containers(ended("app", 1), runs("side", true)))),
				setting(pod(strict), running()),
			},
			look: func(s *side) string {
				return fmt.Sprint(strings.Contains(requests(fakeapi.Patch)(s), "422"))
			},
			stock: "true", ours: "false",
		},
		{
			name: "77 order alone is not sent", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running()), func(s *side) {
				s.edit("web", func(p *v1.Pod) { conditions(v1.ConditionTrue, "example.com/theirs")(&p.Status) })
				s.set(pod(), running(phase(v1.PodPending)))
			}},
			look: func(s *side) string {
				p, _ := s.api.Pod(namespace, "web")
				return string(p.Status.Conditions[0].Type)
			},
			stock: "example.com/theirs", ours: "PodScheduled",
		},
		{
			name: "83 what the server keeps is not sent", pods: []*v1.Pod{pod(deleted)},
			steps: []func(*side){setting(pod(deleted), running(unclassed)), setting(pod(deleted), running(unclassed))},
			look:  requests(fakeapi.Patch), stock: "PATCH 200, PATCH 200", ours: "PATCH 200",
		},
		{
			name: "93 a pod that returns is sent at once", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running()), func(s *side) {
				s.RemoveOrphanedStatuses(quiet, map[types.UID]bool{})
				s.set(pod(), running(phase(v1.PodPending)))
			}},
			look: livePhase, stock: "Running", ours: "Pending",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range []struct {
				name, want string
				*side
			}{{"stock", tt.stock, stockSide(t, tt.pods)}, {"adapter", tt.ours, adapterSide(t, tt.pods)}} {
				for _, step := range tt.steps {
					step(s.side)
					s.settle()
				}
				if got := tt.look(s.side); got != s.want {
					t.Errorf("%s: got %q, want %q", s.name, got, s.want)
				}
			}
		})
	}
}

func livePhase(s *side) string {
	p, _ := s.api.Pod(namespace, "web")
	return string(p.Status.Phase)
}

func requests(verb fakeapi.Verb) func(*side) string {
	return func(s *side) string {
		var out []string
		for _, r := range s.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{verb}, Name: "web"}) {
			out = append(out, fmt.Sprintf("%s %d", r.Method, r.Code))
		}
		return strings.Join(out, ", ")
	}
}
