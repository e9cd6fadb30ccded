// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Equal reports whether two normalised statuses say the same (SEMANTICS 58-60).
//
// Owned and shared conditions are compared as a set, by status, reason and
// message; their times, probe times, observed generations and order do not
// matter, nor do other conditions and the three claim-status fields. All else is
// compared semantically: quantities by value, times by instant, nil and empty
// lists and maps alike. Of duplicate condition types the last one counts. As a
// normalised time has no fraction, fractions are not looked at.
//
// It runs for every update that changes nothing, so the fields that a status
// usually has are compared by hand; deep equality by reflection would cost more
// than all the rest of such an update.
func Equal(a, b *v1.PodStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Phase == b.Phase &&
		a.ObservedGeneration == b.ObservedGeneration &&
		a.Reason == b.Reason &&
		a.Message == b.Message &&
		a.HostIP == b.HostIP &&
		a.PodIP == b.PodIP &&
		a.QOSClass == b.QOSClass &&
		a.NominatedNodeName == b.NominatedNodeName &&
		a.Resize == b.Resize &&
		equalTimePointers(a.StartTime, b.StartTime) &&
		slices.Equal(a.HostIPs, b.HostIPs) &&
		slices.Equal(a.PodIPs, b.PodIPs) &&
		equalConditions(a.Conditions, b.Conditions) &&
		equalContainers(a.ContainerStatuses, b.ContainerStatuses) &&
		equalContainers(a.InitContainerStatuses, b.InitContainerStatuses) &&
		equalContainers(a.EphemeralContainerStatuses, b.EphemeralContainerStatuses) &&
		equalQuantities(a.AllocatedResources, b.AllocatedResources) &&
		equalRequirements(a.Resources, b.Resources) &&
		slices.EqualFunc(a.VolumeHealth, b.VolumeHealth, equalVolumeHealth)
}

// equalConditions compares the owned and shared conditions as sets.
func equalConditions(a, b []v1.PodCondition) bool {
	types := 0
	for i := range a {
		if !countsIn(a, i) {
			continue
		}
		j := lastCondition(b, a[i].Type)
		if j < 0 || a[i].Status != b[j].Status || a[i].Reason != b[j].Reason || a[i].Message != b[j].Message {
			return false
		}
		types++
	}
	for i := range b {
		if countsIn(b, i) {
			types--
		}
	}
	return types == 0
}

// countsIn reports whether condition i is compared at all: it is owned or
// shared, and no later one has its type.
func countsIn(conditions []v1.PodCondition, i int) bool {
	t := conditions[i].Type
	return (OwnedCondition(t) || SharedCondition(t)) && lastCondition(conditions, t) == i
}

// equalContainers walks by index, as a ContainerStatus is too large to pass by
// value for each comparison.
func equalContainers(a, b []v1.ContainerStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equalContainer(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func equalContainer(a, b *v1.ContainerStatus) bool {
	return a.Name == b.Name &&
		a.Ready == b.Ready &&
		a.RestartCount == b.RestartCount &&
		a.ContainerID == b.ContainerID &&
		a.Image == b.Image &&
		a.ImageID == b.ImageID &&
		equalPointers(a.Started, b.Started) &&
		equalPointers(a.StopSignal, b.StopSignal) &&
		equalState(&a.State, &b.State) &&
		equalState(&a.LastTerminationState, &b.LastTerminationState) &&
		equalQuantities(a.AllocatedResources, b.AllocatedResources) &&
		equalRequirements(a.Resources, b.Resources) &&
		slices.EqualFunc(a.VolumeMounts, b.VolumeMounts, equalMount) &&
		equalUser(a.User, b.User) &&
		equalDeviceHealth(a.AllocatedResourcesStatus, b.AllocatedResourcesStatus)
}

func equalState(a, b *v1.ContainerState) bool {
	if !equalPointers(a.Waiting, b.Waiting) {
		return false
	}
	if (a.Running == nil) != (b.Running == nil) || (a.Terminated == nil) != (b.Terminated == nil) {
		return false
	}
	if a.Running != nil && !sameSecond(a.Running.StartedAt, b.Running.StartedAt) {
		return false
	}
	return a.Terminated == nil || equalTerminated(a.Terminated, b.Terminated)
}

func equalTerminated(a, b *v1.ContainerStateTerminated) bool {
	return a.ExitCode == b.ExitCode &&
		a.Signal == b.Signal &&
		a.Reason == b.Reason &&
		a.Message == b.Message &&
		a.ContainerID == b.ContainerID &&
		sameSecond(a.StartedAt, b.StartedAt) &&
		sameSecond(a.FinishedAt, b.FinishedAt)
}

func equalMount(a, b v1.VolumeMountStatus) bool {
	if a.Name != b.Name || a.MountPath != b.MountPath || a.ReadOnly != b.ReadOnly ||
		!equalPointers(a.RecursiveReadOnly, b.RecursiveReadOnly) {
		return false
	}
	// Only image volumes have one.
	if a.VolumeStatus == nil && b.VolumeStatus == nil {
		return true
	}
	return apiequality.Semantic.DeepEqual(a.VolumeStatus, b.VolumeStatus)
}

func equalUser(a, b *v1.ContainerUser) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Linux == nil || b.Linux == nil {
		return a.Linux == b.Linux
	}
	return a.Linux.UID == b.Linux.UID && a.Linux.GID == b.Linux.GID &&
		slices.Equal(a.Linux.SupplementalGroups, b.Linux.SupplementalGroups)
}

// equalDeviceHealth covers what few containers have.
func equalDeviceHealth(a, b []v1.ResourceStatus) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

func equalRequirements(a, b *v1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equalQuantities(a.Limits, b.Limits) &&
		equalQuantities(a.Requests, b.Requests) &&
		slices.Equal(a.Claims, b.Claims)
}

func equalQuantities(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, ok := b[name]; !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func equalVolumeHealth(a, b v1.PodVolumeHealth) bool {
	return a.Name == b.Name &&
		sameSecond(a.LastTransitionTime, b.LastTransitionTime) &&
		slices.Equal(a.HealthConditions, b.HealthConditions)
}

// equalTimePointers tells nil and the zero time apart, as Semantic does.
func equalTimePointers(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameSecond(*a, *b)
}

func sameSecond(a, b metav1.Time) bool { return a.Unix() == b.Unix() }

func equalPointers[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
