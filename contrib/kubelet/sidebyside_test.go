// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// side is one status manager with its own API server. The same calls on the stock
// manager and on the adapter must have the same answers, make the same requests
// and leave the same pods.
type side struct {
	t testing.TB
	kubestatus.Manager
	*host
	api    *fakeapi.Server
	pods   kubepod.Manager
	settle func()
	heard  []string // answers of calls
}

func adapterSide(t testing.TB, pods []*v1.Pod) *side {
	w := newWorld(t, pods...)
	return &side{t: t, Manager: w.Manager, host: &w.host, api: w.api, pods: w.pods, settle: w.settle}
}

func stockSide(t testing.TB, pods []*v1.Pod) *side {
	t.Helper()
	api, client := newAPI(t)
	s := &side{t: t, host: &host{}, api: api, pods: kubepod.NewBasicPodManager()}
	for _, p := range pods {
		s.put(p)
	}
	s.Manager = kubestatus.NewManager(client, s.pods, s, s)
	// Its loop cannot be ended; from the end of the test on its requests fail.
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), quiet))
	t.Cleanup(cancel)
	s.Start(ctx)
	s.settle = s.settleStock
	return s
}

// settleStock returns when the stock manager has sent all that it was told. It
// sends in batches, in no order: with the answer to a status that was set after
// another one had been sent, the batch of the first one is over.
func (s *side) settleStock() {
	s.t.Helper()
	for i := range 2 {
		probe := pod(named(fmt.Sprintf("probe-%d", i)))
		probe.UID = types.UID(fmt.Sprintf("%s-%d", probe.UID, s.api.ResourceVersion()))
		if _, err := s.api.Put(probe); err != nil {
			s.t.Fatal(err)
		}
		s.SetPodStatus(quiet, probe, status(v1.PodRunning))
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		if _, err := s.api.Wait(ctx, namespace, probe.Name, inPhase(v1.PodRunning)); err != nil {
			s.t.Fatal(err)
		}
		cancel()
	}
}

func (s *side) put(p *v1.Pod) {
	s.t.Helper()
	stored, err := s.api.Put(p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.pods.UpdatePod(stored)
}

// edit changes a pod behind the manager's back, as other clients do.
func (s *side) edit(name string, change func(*v1.Pod)) {
	s.t.Helper()
	if err := s.api.Mutate(namespace, name, change); err != nil {
		s.t.Fatal(err)
	}
	p, _ := s.api.Pod(namespace, name)
	s.pods.UpdatePod(p)
}

// set and the like write down the answers.
func (s *side) set(p *v1.Pod, st v1.PodStatus) {
	stored, changed := s.SetPodStatus(quiet, p, st)
	s.hear("set %s: %v %s", p.Name, changed, brief(stored))
}

func (s *side) hear(format string, args ...any) {
	s.heard = append(s.heard, fmt.Sprintf(format, args...))
}

// brief is what matters of a status in an answer: the rest is compared on the server.
func brief(st v1.PodStatus) string {
	var parts []string
	for _, c := range st.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	for _, list := range [][]v1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses, st.EphemeralContainerStatuses} {
		for _, c := range list {
			parts = append(parts, fmt.Sprintf("%s:%v/%v/%v", c.Name, c.State.Terminated != nil, c.Ready, c.Started != nil && *c.Started))
		}
	}
	return fmt.Sprintf("%s gen %d start %v %s", st.Phase, st.ObservedGeneration, st.StartTime != nil, strings.Join(parts, " "))
}

// seen is all that can be compared from outside.
type seen struct {
	Heard    []string
	Requests []string
	Pods     map[string]v1.PodStatus
}

func (s *side) seen() seen {
	out := seen{Heard: s.heard, Pods: map[string]v1.PodStatus{}}
	for _, p := range s.api.Pods() {
		if !strings.HasPrefix(p.Name, "probe-") {
			out.Pods[p.Name+" "+string(p.UID)] = tidy(&p.Status)
		}
	}
	for _, r := range s.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch, fakeapi.Delete}}) {
		if !strings.HasPrefix(r.Name, "probe-") {
			out.Requests = append(out.Requests, fmt.Sprintf("%s %s %s: %d", r.Method, r.Name, r.Subresource, r.Code))
		}
	}
	slices.Sort(out.Requests) // the order between pods is nobody's promise
	return out
}

// tidy takes out of a status what differs for good reasons.
func tidy(s *v1.PodStatus) v1.PodStatus {
	s = s.DeepCopy()
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			// A container whose end nobody saw: our words (SEMANTICS 40), and its ID
			// stays (SEMANTICS 46).
			if t := list[i].State.Terminated; t != nil && t.Reason == "ContainerStatusUnknown" {
				t.Message, t.ContainerID = "", ""
			}
		}
	}
	return *s
}

// sameTime holds for times that both sides took from their clock at about the
// same moment, and for equal ones.
func sameTime(a, b metav1.Time) bool { return a.Sub(b.Time).Abs() < 30*time.Second }

var comparing = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(sameTime),
	cmp.Comparer(func(a, b *metav1.Time) bool { return a == b || a != nil && b != nil && sameTime(*a, *b) }),
}

// sameCase is a sequence of calls. After each step both sides settle.
type sameCase struct {
	name  string // with the rules that it is about
	pods  []*v1.Pod
	steps []func(*side)
}

// setting is a step that sets a status.
func setting(p *v1.Pod, st v1.PodStatus) func(*side) { return func(s *side) { s.set(p, st) } }

func TestSideBySide(t *testing.T) {
	for _, tt := range slices.Concat(setCases(), containerCases(), serverCases(), endCases(), otherCases()) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ours, stock := adapterSide(t, tt.pods), stockSide(t, tt.pods)
			for i, step := range tt.steps {
				for _, s := range []*side{ours, stock} {
					step(s)
					s.settle()
				}
				if diff := cmp.Diff(stock.seen(), ours.seen(), comparing); diff != "" {
					t.Fatalf("after step %d (-stock +adapter):\n%s", i+1, diff)
				}
			}
			if len(stock.seen().Requests) == 0 && len(stock.heard) == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// TestSideBySide_Passes has what the stock manager notices only in its pass, each
// 10 s.
func TestSideBySide_Passes(t *testing.T) {
	failed := running(phase(v1.PodFailed), containers(ended("app", 1), ended("side", 1)),
		conditions(v1.ConditionFalse, v1.PodReady, v1.ContainersReady))
	tests := []struct {
		sameCase
		until func(*v1.Pod) bool
	}{
		{
			sameCase{name: "91 the server's copy was changed", steps: []func(*side){setting(pod(), running()), func(s *side) {
				s.edit("web", func(p *v1.Pod) {
					p.Status.Phase = v1.PodPending
					p.Status.ContainerStatuses = nil
					conditions(v1.ConditionFalse, v1.PodReady)(&p.Status)
					conditions(v1.ConditionTrue, "example.com/theirs")(&p.Status)
				})
			}}},
			inPhase(v1.PodRunning),
		},
		{
			sameCase{name: "47 96 a finished pod is deleted", steps: []func(*side){
				(*side).end, setting(pod(), running()), terminating(pod()), setting(pod(), failed),
				func(s *side) { s.edit("web", deleted) },
			}},
			gone,
		},
		{
			sameCase{name: "82 the containers are gone", steps: []func(*side){setting(pod(), running()), setting(pod(), failed), (*side).end}},
			inPhase(v1.PodFailed),
		},
	}
	sides := make([][]*side, len(tests))
	for i, tt := range tests { // all at once, so that they wait together
		pods := []*v1.Pod{pod()}
		sides[i] = []*side{adapterSide(t, pods), stockSide(t, pods)}
		for n, step := range tt.steps {
			for _, s := range sides[i] {
				step(s)
				if n < len(tt.steps)-1 {
					s.settle()
				}
			}
		}
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range sides[i] {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := s.api.Wait(ctx, namespace, "web", tt.until); err != nil {
					t.Fatal(err)
				}
				s.settle() // until the request is answered, too
			}
			if diff := cmp.Diff(sides[i][1].seen(), sides[i][0].seen(), comparing); diff != "" {
				t.Errorf("(-stock +adapter):\n%s", diff)
			}
		})
	}
}
