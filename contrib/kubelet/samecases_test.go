// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

// The cases of TestSideBySide. Rules marked [!] in SEMANTICS are left out: there
// the two differ on purpose.

func setCases() []sameCase {
	nano := metav1.NewTime(longAgo.Add(123456789))
	return []sameCase{
		{
			name: "10-13 first status, the same again, another", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running()), setting(pod(), running()), setting(pod(), running(phase(v1.PodPending)))},
		},
		{
			name: "11 52 observed generation", pods: []*v1.Pod{pod(generation(4))},
			steps: []func(*side){
				setting(pod(generation(4)), running(func(s *v1.PodStatus) { s.ObservedGeneration = 99 })),
				setting(pod(generation(2)), running()),
				setting(pod(generation(5)), running()),
			},
		},
		{
			name: "12 a deleted pod forces a version", pods: []*v1.Pod{pod(deleted)},
			steps: []func(*side){setting(pod(deleted), running()), setting(pod(deleted), running())},
		},
		{
			name: "8 50 51 times follow the status in the pod", pods: []*v1.Pod{pod(with(
				phase(v1.PodPending), conditions(v1.ConditionTrue, v1.PodScheduled), conditions(v1.ConditionFalse, v1.PodReady), since(longAgo),
				func(s *v1.PodStatus) { s.StartTime = new(longAgo) },
			))},
			steps: []func(*side){
				func(s *side) {
					p, _ := s.pods.GetPodByUID("uid-web")
					s.set(p, running(since(metav1.Now())))
				},
				setting(pod(), running(condition(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "Other"}))),
			},
		},
		{
			name: "50 types that are not stamped", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running(resizePending, since(longAgo))), setting(pod(), running(resizePending, since(nano)))},
		},
		{
			name: "57 58 what is compared", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running()),
				setting(pod(), running(condition(v1.PodCondition{Type: "example.com/x", Status: v1.ConditionTrue}))),
				setting(pod(), running(func(s *v1.PodStatus) { s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "c"}} })),
				setting(pod(), running(condition(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, LastProbeTime: longAgo}))),
				setting(pod(), running(condition(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Message: "m"}))),
				setting(pod(), running(condition(v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}))),
			},
		},
		{
			name: "59 nil and empty", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running(func(s *v1.PodStatus) { s.PodIPs, s.HostIPs = []v1.PodIP{}, nil })),
				setting(pod(), running(func(s *v1.PodStatus) { s.PodIPs, s.HostIPs = nil, []v1.HostIP{} })),
			},
		},
		{
			name: "60 duplicate conditions", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running(func(s *v1.PodStatus) {
					s.Conditions = append(s.Conditions, v1.PodCondition{Type: "example.com/x"}, v1.PodCondition{Type: "example.com/x"})
				})),
				setting(pod(), running()),
			},
		},
		{
			name: "61 long messages", pods: []*v1.Pod{pod(initContainers("setup"))},
			steps: []func(*side){setting(pod(initContainers("setup")), running(
				containers(saying(ended("app", 1), strings.Repeat("x", 9000)), saying(ended("side", 0), strings.Repeat("y", 4096))),
				inits(saying(ended("setup", 0), strings.Repeat("z", 4097))),
			))},
		},
		{
			name: "62 64 times and order", pods: []*v1.Pod{pod(initContainers("z", "a"))},
			steps: []func(*side){setting(pod(initContainers("z", "a")), running(
				containers(runs("side", true), runs("app", true)), inits(ended("a", 0), ended("z", 0)),
				ephemerals(ended("y", 0), runs("b", false)),
				func(s *v1.PodStatus) {
					s.StartTime = &nano
					s.ContainerStatuses[0].State.Running.StartedAt = nano
					s.InitContainerStatuses[0].State.Terminated.FinishedAt = nano
				},
			))},
		},
		{
			name: "55 67 69 a container that may not restart", pods: []*v1.Pod{pod(restart(v1.RestartPolicyOnFailure))},
			steps: []func(*side){
				setting(pod(restart(v1.RestartPolicyOnFailure)), running(containers(ended("app", 0), ended("side", 1)))),
				setting(pod(restart(v1.RestartPolicyOnFailure)), running(containers(runs("app", true), ended("side", 1)))),
				setting(pod(restart(v1.RestartPolicyOnFailure)), running(containers(ended("app", 0), runs("side", true)))),
				setting(pod(restart(v1.RestartPolicyOnFailure)), running(containers(runs("side", true)))),
			},
		},
		{
			name: "67 72 init containers", pods: []*v1.Pod{pod(restart(v1.RestartPolicyNever), initContainers("setup"), sidecar("proxy"))},
			steps: []func(*side){
				setting(pod(restart(v1.RestartPolicyNever), initContainers("setup"), sidecar("proxy")), status(v1.PodPending, inits(ended("setup", 0), ended("proxy", 1)))),
				setting(pod(restart(v1.RestartPolicyNever), initContainers("setup"), sidecar("proxy")), status(v1.PodPending, inits(ended("setup", 0), runs("proxy", true)))),
				setting(pod(restart(v1.RestartPolicyNever), initContainers("setup"), sidecar("proxy")), status(v1.PodPending, inits(runs("setup", false), runs("proxy", true)))),
				setting(pod(restart(v1.RestartPolicyNever)), running()), // the spec lacks what the status has
			},
		},
	}
}

func containerCases() []sameCase {
	gated := pod(gate("example.com/g"), gate("example.com/h"))
	proxied := pod(sidecar("proxy"))
	return []sameCase{
		{
			name: "16-19 readiness", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("app"), false) },
				setting(pod(), running()),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("app"), false) },
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("app"), false) },
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("none"), false) },
				func(s *side) { s.SetContainerReadiness(quiet, "none", id("app"), false) },
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("app"), true) },
				hearing("uid-web"),
			},
		},
		{
			name: "19 missing conditions are appended", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), status(v1.PodRunning, containers(runs("app", true), runs("side", false)))),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("side"), true) },
			},
		},
		{
			name: "19 74 readiness gates", pods: []*v1.Pod{gated},
			steps: []func(*side){
				setting(gated, running(containers(runs("app", true), runs("side", false)), conditions(v1.ConditionFalse, v1.PodReady, v1.ContainersReady))),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("side"), true) },
				setting(gated, running(conditions(v1.ConditionTrue, "example.com/g", "example.com/h"), containers(runs("app", true), runs("side", false)))),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("side"), true) },
			},
		},
		{
			name: "17 73 a sidecar counts", pods: []*v1.Pod{proxied},
			steps: []func(*side){
				setting(proxied, running(inits(runs("proxy", true)))),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("proxy"), false) },
				func(s *side) { s.SetContainerStartup(quiet, "uid-web", id("proxy"), false) },
			},
		},
		{
			name: "20 startup", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running(func(s *v1.PodStatus) { s.ContainerStatuses[0].Started = nil })),
				func(s *side) { s.SetContainerStartup(quiet, "uid-web", id("app"), false) },
				func(s *side) { s.SetContainerStartup(quiet, "uid-web", id("app"), false) },
				func(s *side) { s.SetContainerStartup(quiet, "uid-web", id("app"), true) },
				func(s *side) { s.SetContainerStartup(quiet, "uid-web", id("none"), true) },
			},
		},
		{
			name: "17 ephemeral containers are not searched", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running(ephemerals(runs("debug", false)))),
				func(s *side) { s.SetContainerReadiness(quiet, "uid-web", id("debug"), true) },
				hearing("uid-web"),
			},
		},
		{
			name: "23-26 volume health", pods: []*v1.Pod{pod(volume("v"), volume("w"))},
			steps: []func(*side){
				health("v", "Degraded", "R"),
				setting(pod(volume("v"), volume("w")), running()),
				health("v", "Degraded", "R"),
				health("v", "Degraded", "R"),
				health("w"),
				health("w", "Degraded", "S"),
				setting(pod(volume("v"), volume("w")), running(phase(v1.PodPending))),
				health("v"),
			},
		},
	}
}

func hearing(uid types.UID) func(*side) {
	return func(s *side) {
		st, ok := s.GetPodStatus(uid)
		s.hear("get %s: %v %s", uid, ok, brief(st))
	}
}

// health sets the pairs of status and reason of a volume.
func health(volume string, pairs ...string) func(*side) {
	return func(s *side) {
		var all []v1.VolumeHealthCondition
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, v1.VolumeHealthCondition{Status: v1.VolumeHealthStatusType(pairs[i]), Reason: pairs[i+1]})
		}
		s.hear("health %s: %v", volume, s.SetPodVolumeHealth(quiet, "uid-web", volume, all))
	}
}

func serverCases() []sameCase {
	theirs := pod(with(
		phase(v1.PodPending), condition(v1.PodCondition{Type: "example.com/theirs", Status: v1.ConditionTrue}),
		conditions(v1.ConditionFalse, v1.PodReady, v1.PodResizePending), condition(v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "Theirs"}),
		since(longAgo), func(s *v1.PodStatus) { s.NominatedNodeName, s.HostIP = "node-9", "10.0.0.9" },
	))
	claims := func(p *v1.Pod) {
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: new("t")}}
		p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: new("claim-1")}}
	}
	return []sameCase{
		{
			name: "77 81 merge with the server's status", pods: []*v1.Pod{theirs},
			steps: []func(*side){
				setting(theirs, running(condition(v1.PodCondition{Type: "example.com/ours", Status: v1.ConditionTrue}),
					condition(v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionFalse, Reason: "Ours"}))),
				func(s *side) {
					s.edit("web", func(p *v1.Pod) {
						// At the end the adapter would leave it there, see differences.
						p.Status.Conditions = slices.Insert(p.Status.Conditions, 0, v1.PodCondition{Type: "example.com/more", Status: v1.ConditionTrue})
					})
					s.set(pod(), running(phase(v1.PodPending)))
				},
			},
		},
		{
			name: "81 claim statuses", pods: []*v1.Pod{pod(claims)},
			steps: []func(*side){setting(pod(claims), running()), setting(pod(), running(phase(v1.PodPending)))},
		},
		{
			name: "77 an owned condition that is gone", pods: []*v1.Pod{pod()},
			steps: []func(*side){setting(pod(), running(resizePending)), setting(pod(), running())},
		},
		{
			name: "85 the server has it already", pods: []*v1.Pod{pod(func(p *v1.Pod) {
				p.Status = running(func(s *v1.PodStatus) {
					s.StartTime, s.ObservedGeneration, s.QOSClass = new(longAgo), 1, v1.PodQOSBestEffort
				}, since(longAgo))
			})},
			steps: []func(*side){func(s *side) {
				p, _ := s.pods.GetPodByUID("uid-web")
				s.set(p, p.Status)
			}},
		},
		{
			name: "1-6 static pod without and with mirror", pods: []*v1.Pod{pod(named("other"))},
			steps: []func(*side){
				func(s *side) {
					s.pods.AddPod(pod(staticPod))
					s.set(pod(staticPod), running())
				},
				func(s *side) {
					s.pods.AddPod(pod(mirrorPod))
					s.put(pod(mirrorPod))
					s.set(pod(named("other")), running()) // wakes the stock manager
				},
				hearing("mirror"), hearing("source"), hearing("none"), hearing(""),
				func(s *side) { s.SetContainerReadiness(quiet, "mirror", id("app"), false) },
				func(s *side) { s.SetContainerReadiness(quiet, "source", id("app"), false) },
				func(s *side) { // it stays paired without the source
					s.pods.RemovePod(pod(staticPod))
					s.set(pod(staticPod), running(phase(v1.PodPending)))
				},
				terminating(pod(staticPod)), hearing("mirror"),
			},
		},
		{
			name: "8 a static pod follows its mirror's status", pods: []*v1.Pod{pod(mirrorPod, with(
				phase(v1.PodRunning), conditions(v1.ConditionTrue, v1.PodReady), since(longAgo), func(s *v1.PodStatus) { s.StartTime = new(longAgo) },
			))},
			steps: []func(*side){func(s *side) {
				s.pods.AddPod(pod(staticPod))
				s.set(pod(staticPod), running())
			}},
		},
		{
			name: "87 a pod that was recreated", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running()),
				func(s *side) {
					if err := s.api.Remove(namespace, "web"); err != nil {
						s.t.Fatal(err)
					}
					s.put(pod(uid("uid-new"), func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Minute)) }))
					s.set(pod(), running(phase(v1.PodPending)))
				},
				hearing("uid-web"),
				setting(pod(uid("uid-new")), running()),
			},
		},
	}
}

func endCases() []sameCase {
	started := pod(initContainers("one", "two", "three"))
	target := condition(v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "Ours"})
	return []sameCase{
		{
			name: "39 40 45 terminate", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				(*side).end,
				setting(pod(), running(containers(ended("app", 0), runs("side", true)))),
				terminating(pod()), hearing("uid-web"),
			},
		},
		{
			name: "39 45 terminate without a stored status", pods: []*v1.Pod{pod(with(phase(v1.PodPending), containers(waits("app"), waits("side"))))},
			steps: []func(*side){
				(*side).end,
				func(s *side) {
					p, _ := s.pods.GetPodByUID("uid-web")
					s.TerminatePod(quiet, p)
				},
				hearing("uid-web"),
			},
		},
		{
			name: "41 43 not initialized", pods: []*v1.Pod{started},
			steps: []func(*side){
				(*side).end,
				setting(started, status(v1.PodPending, inits(ended("one", 0), runs("two", false), waits("three")), containers(waits("app"), waits("side")))),
				terminating(started), hearing("uid-web"),
			},
		},
		{
			name: "43 nothing was started", pods: []*v1.Pod{started},
			steps: []func(*side){
				(*side).end,
				setting(started, status(v1.PodPending, inits(waits("one"), waits("two"), waits("three")), containers(waits("app"), waits("side")))),
				terminating(started), hearing("uid-web"),
			},
		},
		{
			name: "44 ephemeral containers are left", pods: []*v1.Pod{pod()},
			steps: []func(*side){(*side).end, setting(pod(), running(ephemerals(runs("debug", false)))), terminating(pod()), hearing("uid-web")},
		},
		{
			name: "45 a phase that no pod should have", pods: []*v1.Pod{pod()},
			steps: []func(*side){(*side).end, setting(pod(), running(phase(v1.PodUnknown))), terminating(pod()), hearing("uid-web")},
		},
		{
			name: "79 a terminal phase is held", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				setting(pod(), running()),
				setting(pod(), running(phase(v1.PodFailed), func(s *v1.PodStatus) { s.Reason, s.Message = "Evicted", "m" }, containers(ended("app", 1), runs("side", true)))),
			},
		},
		{
			name: "78 DisruptionTarget goes out with the phase", pods: []*v1.Pod{pod(with(phase(v1.PodPending), target, since(longAgo)))},
			steps: []func(*side){
				(*side).end,
				setting(pod(), running(target)),
				setting(pod(), running(phase(v1.PodFailed), target, containers(ended("app", 1), ended("side", 1)))),
			},
		},
		{
			name: "80 nothing terminal is ready", pods: []*v1.Pod{pod(), pod(named("done"))},
			steps: []func(*side){
				(*side).end,
				setting(pod(), running()),
				setting(pod(), running(phase(v1.PodFailed))),
				setting(pod(named("done")), running(phase(v1.PodSucceeded))),
			},
		},
		{
			name: "96 97 deletion", pods: []*v1.Pod{pod(deleted), pod(named("stays"))},
			steps: []func(*side){
				(*side).end,
				setting(pod(deleted), running()),
				setting(pod(deleted), running(phase(v1.PodFailed))),
				terminating(pod(named("stays"))),
				terminating(pod(deleted)),
				hearing("uid-web"), hearing("uid-stays"),
			},
		},
		{
			name: "98 orphans", pods: []*v1.Pod{pod(), pod(named("b")), pod(named("c"))},
			steps: []func(*side){
				func(s *side) {
					for _, p := range []*v1.Pod{pod(), pod(named("b")), pod(named("c"))} {
						s.set(p, running())
						s.SetPodResizePendingCondition(p.UID, "", "", 1)
					}
				},
				func(s *side) {
					s.RemoveOrphanedStatuses(quiet, map[types.UID]bool{"uid-web": true, "uid-b": false, "x": true})
				},
				hearing("uid-web"), hearing("uid-b"), hearing("uid-c"),
				func(s *side) { s.hear("%v %v", s.IsPodResizeDeferred("uid-b"), s.IsPodResizeDeferred("uid-c")) },
			},
		},
	}
}

func terminating(p *v1.Pod) func(*side) { return func(s *side) { s.TerminatePod(quiet, p) } }

func otherCases() []sameCase {
	conds := func(s *side) {
		for _, c := range s.GetPodResizeConditions("uid-web") {
			s.hear("%s %s %s %q %d %v %v", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration,
				c.LastProbeTime.IsZero(), time.Since(c.LastTransitionTime.Time) < time.Hour)
		}
		s.hear("deferred %v, infeasible %v", s.IsPodResizeDeferred("uid-web"), s.IsPodResizeInfeasible("uid-web"))
	}
	pending := func(reason, message string, generation int64) func(*side) {
		return func(s *side) {
			s.hear("pending: %v", s.SetPodResizePendingCondition("uid-web", reason, message, generation))
			conds(s)
		}
	}
	progress := func(reason, message string, generation int64) func(*side) {
		return func(s *side) {
			g, changed := s.SetPodResizeInProgressCondition("uid-web", reason, message, generation)
			s.hear("in progress: %d %v", g, changed)
			conds(s)
		}
	}
	clearing := func(s *side) {
		s.ClearPodResizePendingCondition("uid-web", metrics.DeferredResizeResolutionAccepted)
		g, cleared := s.ClearPodResizeInProgressCondition("uid-web")
		s.hear("cleared: %d %v", g, cleared)
		conds(s)
	}
	return []sameCase{
		{
			name: "28-35 resize conditions", pods: []*v1.Pod{pod()},
			steps: []func(*side){
				clearing,
				pending("Whatever", "a", 1), pending(v1.PodReasonDeferred, "b", 1), pending(v1.PodReasonDeferred, "b", 2),
				setting(pod(), running()),
				pending(v1.PodReasonInfeasible, "c", 2), pending(v1.PodReasonInfeasible, "c", 2),
				progress("", "", 3), progress("", "", 4), progress(v1.PodReasonError, "e", 5), progress("", "", 6), progress("", "f", 6),
				clearing, clearing,
				progress("", "", 7),
				func(s *side) {
					var all []statusOption
					for _, c := range s.GetPodResizeConditions("uid-web") {
						all = append(all, condition(*c))
					}
					s.set(pod(), running(all...))
				},
			},
		},
		{
			name: "36 backfill", pods: []*v1.Pod{pod(with(resizePending))},
			steps: []func(*side){func(s *side) {
				p, _ := s.pods.GetPodByUID("uid-web")
				s.BackfillPodResizeConditions([]*v1.Pod{p, pod(named("none"))})
				conds(s)
			}},
		},
	}
}
