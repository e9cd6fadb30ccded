// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at returns a whole second of one fixed day: at(10, 5, 0) is 10:05:00.
func at(h, m, s int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 4, h, m, s, 0, time.UTC))
}

var noon = at(12, 0, 0).Time

// podOption changes a pod under construction.
type podOption func(*v1.Pod)

// newPod is default/web-0 with the containers app and side.
func newPod(opts ...podOption) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "uid-a", Generation: 3},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways,
			Containers:    []v1.Container{{Name: "app"}, {Name: "side"}},
		},
	}
	for _, o := range opts {
		o(p)
	}
	return p
}

func policy(p v1.RestartPolicy) podOption { return func(pod *v1.Pod) { pod.Spec.RestartPolicy = p } }

func annotated(key, value string) podOption {
	return func(pod *v1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

func inits(names ...string) podOption {
	return func(pod *v1.Pod) {
		for _, n := range names {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: n})
		}
	}
}

func restartableInits(names ...string) podOption {
	return func(pod *v1.Pod) {
		for _, n := range names {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers,
				v1.Container{Name: n, RestartPolicy: new(v1.ContainerRestartPolicyAlways)})
		}
	}
}

func gates(types ...v1.PodConditionType) podOption {
	return func(pod *v1.Pod) {
		for _, t := range types {
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, v1.PodReadinessGate{ConditionType: t})
		}
	}
}

// containerPolicy gives an init or regular container its own policy and rules.
func containerPolicy(name string, p v1.ContainerRestartPolicy, rules ...v1.ContainerRestartRule) podOption {
	return func(pod *v1.Pod) {
		c := findAnySpec(pod, name)
		c.RestartPolicy = new(p)
		c.RestartPolicyRules = rules
	}
}

func rule(action v1.ContainerRestartRuleAction, op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) v1.ContainerRestartRule {
	return v1.ContainerRestartRule{
		Action:    action,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
	}
}

// statusOption changes a status under construction.
type statusOption func(*v1.PodStatus)

func newStatus(phase v1.PodPhase, opts ...statusOption) *v1.PodStatus {
	s := &v1.PodStatus{Phase: phase}
	for _, o := range opts {
		o(s)
	}
	return s
}

func containers(list ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.ContainerStatuses = append(s.ContainerStatuses, list...) }
}

func initContainers(list ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.InitContainerStatuses = append(s.InitContainerStatuses, list...) }
}

func ephemerals(list ...v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) { s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, list...) }
}

func conditions(list ...v1.PodCondition) statusOption {
	return func(s *v1.PodStatus) { s.Conditions = append(s.Conditions, list...) }
}

func started(t metav1.Time) statusOption {
	return func(s *v1.PodStatus) { s.StartTime = &t }
}

func because(reason, message string) statusOption {
	return func(s *v1.PodStatus) { s.Reason, s.Message = reason, message }
}

func health(volume string, list ...v1.VolumeHealthCondition) statusOption {
	return func(s *v1.PodStatus) {
		s.VolumeHealth = append(s.VolumeHealth, v1.PodVolumeHealth{Name: volume, HealthConditions: list, LastTransitionTime: at(9, 0, 0)})
	}
}

// containerOption changes a container status under construction.
type containerOption func(*v1.ContainerStatus)

func newContainer(name string, state v1.ContainerState, opts []containerOption) v1.ContainerStatus {
	c := v1.ContainerStatus{Name: name, State: state, ContainerID: "containerd://" + name}
	for _, o := range opts {
		o(&c)
	}
	return c
}

func running(name string, opts ...containerOption) v1.ContainerStatus {
	return newContainer(name, v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at(9, 0, 0)}}, opts)
}

func waiting(name string, opts ...containerOption) v1.ContainerStatus {
	return newContainer(name, v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "PodInitializing"}}, opts)
}

// blank has no state member at all, which the API reads as waiting.
func blank(name string, opts ...containerOption) v1.ContainerStatus {
	return newContainer(name, v1.ContainerState{}, opts)
}

func terminated(name string, exitCode int32, opts ...containerOption) v1.ContainerStatus {
	return newContainer(name, ended(exitCode), opts)
}

func ended(exitCode int32) v1.ContainerState {
	reason := "Completed"
	if exitCode != 0 {
		reason = "Error"
	}
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, StartedAt: at(9, 0, 0), FinishedAt: at(9, 30, 0),
	}}
}

func after(exitCode int32) containerOption {
	return func(c *v1.ContainerStatus) { c.LastTerminationState = ended(exitCode) }
}

func ready(c *v1.ContainerStatus)     { c.Ready = true }
func startedUp(c *v1.ContainerStatus) { c.Started = new(true) }

func message(m string) containerOption {
	return func(c *v1.ContainerStatus) { c.State.Terminated.Message = m }
}

func cond(t v1.PodConditionType, status v1.ConditionStatus, since metav1.Time) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: status, LastTransitionTime: since}
}

func isTrueSince(t v1.PodConditionType, since metav1.Time) v1.PodCondition {
	return cond(t, v1.ConditionTrue, since)
}

func isFalseSince(t v1.PodConditionType, since metav1.Time) v1.PodCondition {
	return cond(t, v1.ConditionFalse, since)
}

func saying(c v1.PodCondition, reason, message string) v1.PodCondition {
	c.Reason, c.Message = reason, message
	return c
}

// fullStatus has every field that statuses usually have, and most others.
func fullStatus() *v1.PodStatus {
	cpu := v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("64Mi")}
	rich := func(c *v1.ContainerStatus) {
		c.Ready, c.Started, c.RestartCount = true, new(true), 2
		c.Image, c.ImageID = "registry.example/app:1", "sha256:0123"
		c.AllocatedResources = cpu.DeepCopy()
		c.Resources = &v1.ResourceRequirements{Requests: cpu.DeepCopy(), Limits: cpu.DeepCopy(), Claims: []v1.ResourceClaim{{Name: "gpu"}}}
		c.VolumeMounts = []v1.VolumeMountStatus{{Name: "data", MountPath: "/data", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)}}
		c.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1, GID: 2, SupplementalGroups: []int64{3, 4}}}
		c.StopSignal = new(v1.SIGTERM)
	}
	s := newStatus(v1.PodRunning,
		containers(running("app", rich, after(1)), running("side", rich)),
		conditions(
			isTrueSince(v1.PodReadyToStartContainers, at(9, 0, 1)),
			isTrueSince(v1.PodInitialized, at(9, 0, 2)),
			isTrueSince(v1.PodReady, at(9, 0, 3)),
			isTrueSince(v1.ContainersReady, at(9, 0, 3)),
			isTrueSince(v1.PodScheduled, at(9, 0, 0)),
		),
		started(at(9, 0, 0)),
		health("data", v1.VolumeHealthCondition{Status: v1.VolumeHealthDegraded, Reason: "Slow", Message: "slow"}),
	)
	s.ObservedGeneration = 3
	s.QOSClass = v1.PodQOSBurstable
	s.HostIP, s.HostIPs = "192.0.2.1", []v1.HostIP{{IP: "192.0.2.1"}}
	s.PodIP, s.PodIPs = "198.51.100.1", []v1.PodIP{{IP: "198.51.100.1"}}
	s.AllocatedResources = cpu.DeepCopy()
	s.Resources = &v1.ResourceRequirements{Requests: cpu.DeepCopy()}
	return s
}

// check reports a difference between got and want.
func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// mustCompute is Compute for updates that are legal.
func mustCompute(t *testing.T, u Update) Result {
	t.Helper()
	r, err := Compute(u)
	if err != nil {
		t.Fatalf("Compute: %v", err)
	}
	return r
}
