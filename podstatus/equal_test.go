// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// referenceEqual is SEMANTICS 58-60 with maps and reflection: slow and short.
func referenceEqual(a, b *v1.PodStatus) bool {
	split := func(s *v1.PodStatus) (map[v1.PodConditionType][3]string, *v1.PodStatus) {
		set := map[v1.PodConditionType][3]string{}
		for _, c := range s.Conditions {
			if OwnedCondition(c.Type) || SharedCondition(c.Type) {
				set[c.Type] = [3]string{string(c.Status), c.Reason, c.Message}
			}
		}
		rest := s.DeepCopy()
		rest.Conditions = nil
		rest.ResourceClaimStatuses = nil
		rest.ExtendedResourceClaimStatus = nil
		rest.NodeAllocatableResourceClaimStatuses = nil
		return set, rest
	}
	setA, restA := split(a)
	setB, restB := split(b)
	return reflect.DeepEqual(setA, setB) && apiequality.Semantic.DeepEqual(restA, restB)
}

func TestSemantics58_Differences(t *testing.T) {
	app := func(change func(*v1.ContainerStatus)) statusOption {
		return func(s *v1.PodStatus) { change(&s.ContainerStatuses[0]) }
	}
	c := func(i int, change func(*v1.PodCondition)) statusOption {
		return func(s *v1.PodStatus) { change(&s.Conditions[i]) }
	}
	for _, tc := range []struct {
		name   string
		change statusOption
		want   bool
	}{
		{"nothing", func(*v1.PodStatus) {}, true},

		// Ignored.
		{"condition times", c(2, func(c *v1.PodCondition) { c.LastProbeTime, c.LastTransitionTime = at(1, 0, 0), at(2, 0, 0) }), true},
		{"condition generation", c(2, func(c *v1.PodCondition) { c.ObservedGeneration++ }), true},
		{"foreign condition", conditions(isTrueSince("example.com/gate", at(9, 0, 0))), true},
		{"order of conditions, C34", func(s *v1.PodStatus) { s.Conditions[0], s.Conditions[4] = s.Conditions[4], s.Conditions[0] }, true},
		{"resource claims", func(s *v1.PodStatus) { s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "x"}} }, true},
		{"extended claims", func(s *v1.PodStatus) { s.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{} }, true},
		{"allocatable claims", func(s *v1.PodStatus) {
			s.NodeAllocatableResourceClaimStatuses = []v1.NodeAllocatableResourceClaimStatus{{}}
		}, true},

		// Conditions.
		{"condition status", c(2, func(c *v1.PodCondition) { c.Status = v1.ConditionFalse }), false},
		{"condition reason", c(2, func(c *v1.PodCondition) { c.Reason = "x" }), false},
		{"condition message, C10", c(2, func(c *v1.PodCondition) { c.Message = "x" }), false},
		{"condition gone", func(s *v1.PodStatus) { s.Conditions = s.Conditions[1:] }, false},
		{"condition added", conditions(isTrueSince(v1.PodResizePending, at(9, 0, 0))), false},
		{"shared condition added", conditions(isTrueSince(v1.DisruptionTarget, at(9, 0, 0))), false},
		{"restart condition added", conditions(isTrueSince(v1.AllContainersRestarting, at(9, 0, 0))), false},

		// Duplicates: the last one counts.
		{"same duplicate", conditions(isTrueSince(v1.PodReady, at(9, 0, 0))), true},
		{"other duplicate", conditions(isFalseSince(v1.PodReady, at(9, 0, 0))), false},
		{"duplicate before", func(s *v1.PodStatus) {
			s.Conditions = append([]v1.PodCondition{isFalseSince(v1.PodReady, at(9, 0, 0))}, s.Conditions...)
		}, true},

		// By value, by instant, nil like empty.
		{"quantity spelled otherwise", app(func(c *v1.ContainerStatus) { c.AllocatedResources[v1.ResourceCPU] = resource.MustParse("0.25") }), true},
		{"time zone", func(s *v1.PodStatus) { s.StartTime = new(metav1.NewTime(s.StartTime.Local())) }, true},
		{"empty lists", func(s *v1.PodStatus) {
			s.InitContainerStatuses, s.EphemeralContainerStatuses = []v1.ContainerStatus{}, []v1.ContainerStatus{}
			s.Resources.Limits = v1.ResourceList{}
			s.ContainerStatuses[0].AllocatedResourcesStatus = []v1.ResourceStatus{}
		}, true},

		// The pod.
		{"phase", func(s *v1.PodStatus) { s.Phase = v1.PodFailed }, false},
		{"generation", func(s *v1.PodStatus) { s.ObservedGeneration++ }, false},
		{"reason", because("x", ""), false},
		{"message", because("", "x"), false},
		{"host IP", func(s *v1.PodStatus) { s.HostIP = "x" }, false},
		{"host IPs", func(s *v1.PodStatus) { s.HostIPs[0].IP = "x" }, false},
		{"pod IP", func(s *v1.PodStatus) { s.PodIP = "x" }, false},
		{"pod IPs", func(s *v1.PodStatus) { s.PodIPs = append(s.PodIPs, v1.PodIP{IP: "x"}) }, false},
		{"QoS class", func(s *v1.PodStatus) { s.QOSClass = v1.PodQOSGuaranteed }, false},
		{"nominated node", func(s *v1.PodStatus) { s.NominatedNodeName = "x" }, false},
		{"resize", func(s *v1.PodStatus) { s.Resize = v1.PodResizeStatusDeferred }, false},
		{"start time", started(at(8, 0, 0)), false},
		{"no start time", func(s *v1.PodStatus) { s.StartTime = nil }, false},
		{"allocated", func(s *v1.PodStatus) { s.AllocatedResources[v1.ResourceCPU] = resource.MustParse("1") }, false},
		{"other resource", func(s *v1.PodStatus) {
			s.AllocatedResources = v1.ResourceList{v1.ResourceCPU: s.AllocatedResources[v1.ResourceCPU], "x": {}}
		}, false},
		{"fewer resources", func(s *v1.PodStatus) { delete(s.AllocatedResources, v1.ResourceCPU) }, false},
		{"no resources", func(s *v1.PodStatus) { s.Resources = nil }, false},
		{"requests", func(s *v1.PodStatus) { s.Resources.Requests = nil }, false},
		{"volume gone", func(s *v1.PodStatus) { s.VolumeHealth = nil }, false},
		{"volume name", func(s *v1.PodStatus) { s.VolumeHealth[0].Name = "x" }, false},
		{"volume time", func(s *v1.PodStatus) { s.VolumeHealth[0].LastTransitionTime = at(1, 0, 0) }, false},
		{"volume message", func(s *v1.PodStatus) { s.VolumeHealth[0].HealthConditions[0].Message = "x" }, false},

		// A container.
		{"container gone", func(s *v1.PodStatus) { s.ContainerStatuses = s.ContainerStatuses[:1] }, false},
		{"init container", initContainers(waiting("init")), false},
		{"ephemeral container", ephemerals(waiting("debug")), false},
		{"name", app(func(c *v1.ContainerStatus) { c.Name = "x" }), false},
		{"ready", app(func(c *v1.ContainerStatus) { c.Ready = false }), false},
		{"restarts", app(func(c *v1.ContainerStatus) { c.RestartCount++ }), false},
		{"container ID", app(func(c *v1.ContainerStatus) { c.ContainerID = "x" }), false},
		{"image", app(func(c *v1.ContainerStatus) { c.Image = "x" }), false},
		{"image ID", app(func(c *v1.ContainerStatus) { c.ImageID = "x" }), false},
		{"started", app(func(c *v1.ContainerStatus) { c.Started = new(false) }), false},
		{"started unset", app(func(c *v1.ContainerStatus) { c.Started = nil }), false},
		{"stop signal", app(func(c *v1.ContainerStatus) { c.StopSignal = new(v1.SIGINT) }), false},
		{"running since", app(func(c *v1.ContainerStatus) { c.State.Running.StartedAt = at(1, 0, 0) }), false},
		{"waiting", app(func(c *v1.ContainerStatus) { c.State = waiting("").State }), false},
		{"no state", app(func(c *v1.ContainerStatus) { c.State = v1.ContainerState{} }), false},
		{"terminated", app(func(c *v1.ContainerStatus) { c.State = ended(0) }), false},
		{"last exit code", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.ExitCode++ }), false},
		{"last signal", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.Signal++ }), false},
		{"last reason", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.Reason = "x" }), false},
		{"last message", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.Message = "x" }), false},
		{"last ID", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.ContainerID = "x" }), false},
		{"last start", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.StartedAt = at(1, 0, 0) }), false},
		{"last end", app(func(c *v1.ContainerStatus) { c.LastTerminationState.Terminated.FinishedAt = at(1, 0, 0) }), false},
		{"limits", app(func(c *v1.ContainerStatus) { c.Resources.Limits[v1.ResourceCPU] = resource.MustParse("1") }), false},
		{"claims", app(func(c *v1.ContainerStatus) { c.Resources.Claims[0].Request = "x" }), false},
		{"mount name", app(func(c *v1.ContainerStatus) { c.VolumeMounts[0].Name = "x" }), false},
		{"mount path", app(func(c *v1.ContainerStatus) { c.VolumeMounts[0].MountPath = "x" }), false},
		{"mount mode", app(func(c *v1.ContainerStatus) { c.VolumeMounts[0].ReadOnly = false }), false},
		{"mount recursion", app(func(c *v1.ContainerStatus) { c.VolumeMounts[0].RecursiveReadOnly = nil }), false},
		{"mounted image", app(func(c *v1.ContainerStatus) { c.VolumeMounts[0].VolumeStatus = &v1.VolumeStatus{} }), false},
		{"mount gone", app(func(c *v1.ContainerStatus) { c.VolumeMounts = nil }), false},
		{"user", app(func(c *v1.ContainerStatus) { c.User = nil }), false},
		{"user not of Linux", app(func(c *v1.ContainerStatus) { c.User.Linux = nil }), false},
		{"UID", app(func(c *v1.ContainerStatus) { c.User.Linux.UID++ }), false},
		{"GID", app(func(c *v1.ContainerStatus) { c.User.Linux.GID++ }), false},
		{"groups", app(func(c *v1.ContainerStatus) { c.User.Linux.SupplementalGroups = nil }), false},
		{"device health", app(func(c *v1.ContainerStatus) { c.AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "x"}} }), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := fullStatus(), fullStatus()
			tc.change(b)
			if got := Equal(a, b); got != tc.want {
				t.Errorf("Equal = %v, want %v", got, tc.want)
			}
			if got := Equal(b, a); got != tc.want {
				t.Errorf("Equal with the sides swapped = %v, want %v", got, tc.want)
			}
			if got := referenceEqual(a, b); got != tc.want {
				t.Errorf("the reference says %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSemantics59_RareFieldsAreCompared(t *testing.T) {
	image := func(ref string) *v1.VolumeStatus {
		return &v1.VolumeStatus{Image: &v1.ImageVolumeStatus{ImageRef: ref}}
	}
	a, b := fullStatus(), fullStatus()
	a.ContainerStatuses[0].VolumeMounts[0].VolumeStatus = image("x")
	b.ContainerStatuses[0].VolumeMounts[0].VolumeStatus = image("x")
	a.ContainerStatuses[0].AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "gpu", Resources: []v1.ResourceHealth{}}}
	b.ContainerStatuses[0].AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "gpu"}}
	if !Equal(a, b) {
		t.Error("equal image volumes and devices differ")
	}
	b.ContainerStatuses[0].VolumeMounts[0].VolumeStatus = image("y")
	if Equal(a, b) {
		t.Error("another image is no difference")
	}
}

func TestEqual_Nil(t *testing.T) {
	if !Equal(nil, nil) {
		t.Error("nil differs from nil")
	}
	if Equal(nil, new(v1.PodStatus)) || Equal(new(v1.PodStatus), nil) {
		t.Error("nil equals an empty status")
	}
}

// A release of the API that adds a field must not be taken for "no difference".
func TestEqual_KnowsEveryField(t *testing.T) {
	for _, tc := range []struct {
		of   any
		want int
	}{
		{v1.PodStatus{}, 22},
		{v1.PodCondition{}, 7},
		{v1.ContainerStatus{}, 15},
		{v1.ContainerState{}, 3},
		{v1.ContainerStateWaiting{}, 2},
		{v1.ContainerStateRunning{}, 1},
		{v1.ContainerStateTerminated{}, 7},
		{v1.ResourceRequirements{}, 3},
		{v1.VolumeMountStatus{}, 5},
		{v1.ContainerUser{}, 1},
		{v1.LinuxContainerUser{}, 3},
		{v1.PodVolumeHealth{}, 3},
		{v1.VolumeHealthCondition{}, 3},
	} {
		typ := reflect.TypeOf(tc.of)
		if got := typ.NumField(); got != tc.want {
			t.Errorf("%v has %d fields, Equal was written for %d: look at it, then change the number", typ, got, tc.want)
		}
	}
}
