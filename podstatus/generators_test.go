// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Values come from small sets, so that two statuses often agree in part.
var (
	genName    = rapid.SampledFrom([]string{"app", "side", "init", "proxy", "debug", "ghost"})
	genText    = rapid.SampledFrom([]string{"", "x", "äöü", "bad\xffbyte", "cut\xe2\x82"})
	genPhase   = rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown, ""})
	genStatus  = rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown})
	genAmount  = rapid.SampledFrom([]string{"1", "1000m", "250m", "1Gi", "0"})
	genPolicy  = rapid.SampledFrom([]v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, ""})
	genOwn     = rapid.SampledFrom([]v1.ContainerRestartPolicy{always, onFailure, never})
	genCode    = rapid.SampledFrom([]int32{0, 1, 42, 137})
	genCount   = rapid.Int32Range(0, 2)
	genGen     = rapid.Int64Range(0, 3)
	genBool    = rapid.Bool()
	genQOS     = rapid.SampledFrom([]v1.PodQOSClass{"", v1.PodQOSBurstable, v1.PodQOSGuaranteed})
	genType    = rapid.SampledFrom([]v1.PodConditionType{v1.PodReady, v1.ContainersReady, v1.PodInitialized, v1.PodScheduled, v1.DisruptionTarget, v1.PodResizePending, v1.AllContainersRestarting, "example.com/gate", "example.com/other"})
	genVolume  = rapid.SampledFrom([]string{"data", "logs"})
	genAdverse = rapid.SampledFrom([]v1.VolumeHealthStatusType{v1.VolumeHealthDegraded, v1.VolumeHealthDataLoss})
)

// genTime gives the zero time, whole seconds and fractions.
var genTime = rapid.Custom(func(t *rapid.T) metav1.Time {
	if genBool.Draw(t, "zero") {
		return metav1.Time{}
	}
	return metav1.NewTime(at(9, 0, 0).Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "half seconds")) * 500 * time.Millisecond))
})

var genMessage = rapid.Custom(func(t *rapid.T) string {
	m := genText.Draw(t, "message")
	for range rapid.SampledFrom([]int{0, 0, 0, 12}).Draw(t, "doublings") {
		m += m
	}
	return m
})

var genState = rapid.Custom(func(t *rapid.T) v1.ContainerState {
	var s v1.ContainerState
	switch rapid.IntRange(0, 3).Draw(t, "state") {
	case 1:
		s.Waiting = &v1.ContainerStateWaiting{Reason: genText.Draw(t, "reason"), Message: genText.Draw(t, "message")}
	case 2:
		s.Running = &v1.ContainerStateRunning{StartedAt: genTime.Draw(t, "started")}
	case 3:
		s.Terminated = &v1.ContainerStateTerminated{
			ExitCode: genCode.Draw(t, "code"), Reason: genText.Draw(t, "reason"), Message: genMessage.Draw(t, "message"),
			StartedAt: genTime.Draw(t, "started"), FinishedAt: genTime.Draw(t, "finished"), ContainerID: genText.Draw(t, "id"),
		}
	}
	return s
})

var genResources = rapid.Custom(func(t *rapid.T) v1.ResourceList {
	var list v1.ResourceList
	switch rapid.IntRange(0, 2).Draw(t, "resources") {
	case 1:
		list = v1.ResourceList{}
	case 2:
		list = v1.ResourceList{v1.ResourceCPU: resource.MustParse(genAmount.Draw(t, "cpu"))}
	}
	return list
})

var genContainer = rapid.Custom(func(t *rapid.T) v1.ContainerStatus {
	c := v1.ContainerStatus{
		Name: genName.Draw(t, "name"), State: genState.Draw(t, "now"), LastTerminationState: genState.Draw(t, "before"),
		Ready: genBool.Draw(t, "ready"), RestartCount: genCount.Draw(t, "restarts"), ContainerID: genText.Draw(t, "id"),
		AllocatedResources: genResources.Draw(t, "allocated"),
	}
	if genBool.Draw(t, "has started") {
		c.Started = new(genBool.Draw(t, "started"))
	}
	if genBool.Draw(t, "has resources") {
		c.Resources = &v1.ResourceRequirements{Requests: genResources.Draw(t, "requests")}
	}
	if genBool.Draw(t, "has mounts") {
		c.VolumeMounts = []v1.VolumeMountStatus{{Name: genVolume.Draw(t, "mount"), RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)}}
	}
	if genBool.Draw(t, "has user") {
		c.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: genGen.Draw(t, "user"), SupplementalGroups: []int64{1}}}
	}
	if rapid.IntRange(0, 7).Draw(t, "has device") == 0 {
		c.AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "gpu", Resources: []v1.ResourceHealth{{Message: new(genText.Draw(t, "device"))}}}}
	}
	return c
})

var genCondition = rapid.Custom(func(t *rapid.T) v1.PodCondition {
	return v1.PodCondition{
		Type: genType.Draw(t, "type"), Status: genStatus.Draw(t, "status"), ObservedGeneration: genGen.Draw(t, "generation"),
		Reason: genText.Draw(t, "reason"), Message: genText.Draw(t, "message"),
		LastProbeTime: genTime.Draw(t, "probe"), LastTransitionTime: genTime.Draw(t, "transition"),
	}
})

var genHealth = rapid.Custom(func(t *rapid.T) v1.PodVolumeHealth {
	return v1.PodVolumeHealth{
		Name: genVolume.Draw(t, "volume"), LastTransitionTime: genTime.Draw(t, "since"),
		HealthConditions: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1.VolumeHealthCondition {
			return v1.VolumeHealthCondition{Status: genAdverse.Draw(t, "status"), Reason: genText.Draw(t, "reason"), Message: genText.Draw(t, "message")}
		}), 0, 2).Draw(t, "conditions"),
	}
})

var genPodStatus = rapid.Custom(func(t *rapid.T) *v1.PodStatus {
	lists := rapid.SliceOfN(genContainer, 0, 3)
	s := &v1.PodStatus{
		Phase: genPhase.Draw(t, "phase"), Reason: genText.Draw(t, "reason"), Message: genText.Draw(t, "message"),
		ObservedGeneration: genGen.Draw(t, "generation"), QOSClass: genQOS.Draw(t, "class"),
		Conditions:                 rapid.SliceOfN(genCondition, 0, 6).Draw(t, "conditions"),
		ContainerStatuses:          lists.Draw(t, "containers"),
		InitContainerStatuses:      lists.Draw(t, "init containers"),
		EphemeralContainerStatuses: rapid.SliceOfN(genContainer, 0, 1).Draw(t, "ephemeral containers"),
		VolumeHealth:               rapid.SliceOfN(genHealth, 0, 2).Draw(t, "volume health"),
		AllocatedResources:         genResources.Draw(t, "allocated"),
	}
	if genBool.Draw(t, "has start") {
		s.StartTime = new(genTime.Draw(t, "start"))
	}
	if genBool.Draw(t, "has IP") {
		s.PodIP, s.PodIPs = "198.51.100.1", []v1.PodIP{{IP: "198.51.100.1"}}
		s.HostIP, s.HostIPs = "192.0.2.1", []v1.HostIP{{IP: "192.0.2.1"}}
	}
	if genBool.Draw(t, "has claims") {
		s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("x")}}
		s.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}
	}
	return s
})

var genPod = rapid.Custom(func(t *rapid.T) *v1.Pod {
	pod := newPod(policy(genPolicy.Draw(t, "policy")))
	if genBool.Draw(t, "has init") {
		inits("init")(pod)
		restartableInits("proxy")(pod)
	}
	if genBool.Draw(t, "has gate") {
		gates("example.com/gate")(pod)
	}
	if genBool.Draw(t, "has own policy") {
		action := rapid.SampledFrom([]v1.ContainerRestartRuleAction{restart, restartAll}).Draw(t, "action")
		containerPolicy("app", genOwn.Draw(t, "own"), rule(action, in, genCode.Draw(t, "rule code")))(pod)
	}
	if genBool.Draw(t, "has ephemeral") {
		pod.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1)
	}
	pod.Generation = genGen.Draw(t, "pod generation")
	pod.Status = *genPodStatus.Draw(t, "API status")
	return pod
})
