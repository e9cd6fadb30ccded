// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

const (
	node      = "node-1"
	namespace = "default"
)

// longAgo tells transition times that were kept from those that are new.
var longAgo = metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))

// pod is default/web with UID uid-web and the containers app and side.
func pod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "uid-web", Generation: 1},
		Spec: v1.PodSpec{
			NodeName: node, RestartPolicy: v1.RestartPolicyAlways,
			Containers: []v1.Container{{Name: "app", Image: "app:1"}, {Name: "side", Image: "side:1"}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func named(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Name, p.UID = name, types.UID("uid-"+name) }
}

func uid(uid types.UID) func(*v1.Pod) { return func(p *v1.Pod) { p.UID = uid } }

func restart(policy v1.RestartPolicy) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.RestartPolicy = policy }
}

func generation(n int64) func(*v1.Pod) { return func(p *v1.Pod) { p.Generation = n } }

func initContainers(names ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, n := range names {
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: n, Image: n + ":1"})
		}
	}
}

func sidecar(name string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{
			Name: name, Image: name + ":1", RestartPolicy: new(v1.ContainerRestartPolicyAlways),
		})
	}
}

func gate(condition v1.PodConditionType) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: condition})
	}
}

func volume(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name}) }
}

func deleted(p *v1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(longAgo), new(int64(30))
}

func staticPod(p *v1.Pod) {
	p.UID = "source"
	p.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "hash"}
}

func mirrorPod(p *v1.Pod) {
	p.UID = "mirror"
	p.Annotations = map[string]string{
		"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "hash", "kubernetes.io/config.mirror": "hash",
	}
}

func with(options ...statusOption) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Status = status(p.Status.Phase, options...) }
}

type statusOption func(*v1.PodStatus)

// status has the class that the API server gives pods without requests, as a
// kubelet's has.
func status(phase v1.PodPhase, options ...statusOption) v1.PodStatus {
	s := v1.PodStatus{Phase: phase, QOSClass: v1.PodQOSBestEffort}
	for _, o := range options {
		o(&s)
	}
	return s
}

func phase(p v1.PodPhase) statusOption { return func(s *v1.PodStatus) { s.Phase = p } }

// running has both containers running and ready, and all conditions true.
func running(options ...statusOption) v1.PodStatus {
	return status(v1.PodRunning, append([]statusOption{
		containers(runs("app", true), runs("side", true)),
		conditions(v1.ConditionTrue, v1.PodScheduled, v1.PodInitialized, v1.ContainersReady, v1.PodReady),
	}, options...)...)
}

func containers(cs ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.ContainerStatuses = cs }
}

func inits(cs ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.InitContainerStatuses = cs }
}

func ephemerals(cs ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.EphemeralContainerStatuses = cs }
}

func id(name string) kubecontainer.ContainerID {
	return kubecontainer.ContainerID{Type: "containerd", ID: name}
}

func fullID(name string) string { return new(id(name)).String() }

func runs(name string, ready bool) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: name, ContainerID: fullID(name), Image: name + ":1", Ready: ready, Started: new(true),
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: longAgo}},
	}
}

func ended(name string, code int32) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: name, ContainerID: fullID(name), Image: name + ":1", Started: new(false),
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: code, Reason: "Ended", ContainerID: fullID(name), StartedAt: longAgo, FinishedAt: longAgo,
		}},
	}
}

func waits(name string) v1.ContainerStatus {
	return v1.ContainerStatus{
		Name: name, Image: name + ":1", Started: new(false),
		State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "PodInitializing"}},
	}
}

func saying(c v1.ContainerStatus, message string) v1.ContainerStatus {
	c.State.Terminated.Message = message
	return c
}

func conditions(value v1.ConditionStatus, all ...v1.PodConditionType) statusOption {
	return func(s *v1.PodStatus) {
		for _, t := range all {
			// With a generation, as a kubelet's: one that is left out the server keeps.
			condition(v1.PodCondition{Type: t, Status: value, ObservedGeneration: 1})(s)
		}
	}
}

func condition(c v1.PodCondition) statusOption {
	return func(s *v1.PodStatus) {
		for i := range s.Conditions {
			if s.Conditions[i].Type == c.Type {
				s.Conditions[i] = c
				return
			}
		}
		s.Conditions = append(s.Conditions, c)
	}
}

// since dates all conditions back.
func since(at metav1.Time) statusOption {
	return func(s *v1.PodStatus) {
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = at
		}
	}
}

func conditionOf(s *v1.PodStatus, t v1.PodConditionType) v1.PodCondition {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c
		}
	}
	return v1.PodCondition{}
}
