// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"math"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepareStatusUpdate applies the rules for a write to the status subresource:
// the spec, the owners and the deletion stay; labels and annotations may change.
func (s *Server) prepareStatusUpdate(next, old *corev1.Pod) error {
	if err := checkVersion(next, old); err != nil {
		return err
	}
	next.Generation = old.Generation
	next.Spec = *old.Spec.DeepCopy()
	next.OwnerReferences = old.DeepCopy().OwnerReferences
	next.DeletionTimestamp = nil
	keepMetadata(next, old)
	keepStatus(&next.Status, old.DeepCopy().Status)
	if !s.options.VolumeHealth && len(old.Status.VolumeHealth) == 0 {
		next.Status.VolumeHealth = nil
	}
	errs := metavalidation.ValidateObjectMetaUpdate(&next.ObjectMeta, &old.ObjectMeta, metadataPath)
	if errs = append(errs, validateStatusUpdate(next, old)...); len(errs) > 0 {
		return errInvalid(old.Name, errs)
	}
	return nil
}

// keepStatus keeps what a client that doesn't know a field would drop.
func keepStatus(next *corev1.PodStatus, old corev1.PodStatus) {
	if next.QOSClass == "" {
		next.QOSClass = old.QOSClass
	}
	if next.ResourceClaimStatuses == nil {
		next.ResourceClaimStatuses = old.ResourceClaimStatuses
	}
	if next.ExtendedResourceClaimStatus == nil {
		next.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	}
	if next.NodeAllocatableResourceClaimStatuses == nil {
		next.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	}
	if next.ObservedGeneration == 0 {
		next.ObservedGeneration = old.ObservedGeneration
	}
	// A type may occur more than once: the n-th of a type inherits from the n-th.
	generations := map[corev1.PodConditionType][]int64{}
	for _, condition := range old.Conditions {
		generations[condition.Type] = append(generations[condition.Type], condition.ObservedGeneration)
	}
	for i := range next.Conditions {
		condition := &next.Conditions[i]
		inherited := generations[condition.Type]
		if len(inherited) == 0 {
			continue
		}
		generations[condition.Type] = inherited[1:]
		if condition.ObservedGeneration == 0 {
			condition.ObservedGeneration = inherited[0]
		}
	}
}

func validateStatusUpdate(next, old *corev1.Pod) field.ErrorList {
	status, before := &next.Status, &old.Status
	errs := validateConditions(status.Conditions)
	if status.NominatedNodeName != "" && status.NominatedNodeName != before.NominatedNodeName && old.Spec.NodeName != "" {
		errs = append(errs, field.Forbidden(statusPath.Child("nominatedNodeName"), "the pod is bound to a node"))
	}
	errs = append(errs, validateGeneration(status.ObservedGeneration, statusPath)...)
	errs = append(errs, metavalidation.ValidateImmutableField(status.QOSClass, before.QOSClass, statusPath.Child("qosClass"))...)
	errs = append(errs, validateTransitions(next, old)...)
	errs = append(errs, validateClaims(status.ResourceClaimStatuses, next.Spec.ResourceClaims)...)
	errs = append(errs, validateVolumeHealth(status.VolumeHealth, next.Spec.Volumes)...)
	errs = append(errs, validatePodAddresses(status)...)
	errs = append(errs, validateHostAddresses(status)...)
	errs = append(errs, validateUsers(status.ContainerStatuses, statusPath.Child("containerStatuses"))...)
	errs = append(errs, validateUsers(status.InitContainerStatuses, statusPath.Child("initContainerStatuses"))...)
	return append(errs, validateUsers(status.EphemeralContainerStatuses, statusPath.Child("ephemeralContainerStatuses"))...)
}

// validateConditions checks each condition by itself. A type that occurs twice
// is allowed.
func validateConditions(conditions []corev1.PodCondition) field.ErrorList {
	var errs field.ErrorList
	for i, condition := range conditions {
		path := statusPath.Child("conditions").Index(i)
		errs = append(errs, validateGeneration(condition.ObservedGeneration, path)...)
		for _, problem := range validation.IsQualifiedName(string(condition.Type)) {
			errs = append(errs, field.Invalid(path.Child("Type"), condition.Type, problem))
		}
	}
	return errs
}

func validateGeneration(generation int64, path *field.Path) field.ErrorList {
	if generation >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("observedGeneration"), generation, "must not be negative")}
}

func validateClaims(statuses []corev1.PodResourceClaimStatus, claims []corev1.PodResourceClaim) field.ErrorList {
	var errs field.ErrorList
	open := map[string]bool{}
	for _, claim := range claims {
		open[claim.Name] = true
	}
	seen := map[string]bool{}
	for i, status := range statuses {
		path := statusPath.Child("resourceClaimStatuses").Index(i).Child("name")
		if !open[status.Name] {
			errs = append(errs, field.Invalid(path, status.Name, "no such entry in spec.resourceClaims"))
		}
		if seen[status.Name] {
			errs = append(errs, field.Duplicate(path, status.Name))
		}
		seen[status.Name] = true
	}
	return errs
}

func validateVolumeHealth(health []corev1.PodVolumeHealth, volumes []corev1.Volume) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{"": true}
	for _, volume := range volumes {
		names[volume.Name] = true
	}
	for i, entry := range health {
		if !names[entry.Name] {
			errs = append(errs, field.NotFound(statusPath.Child("volumeHealth").Index(i).Child("name"), entry.Name))
		}
	}
	return errs
}

func validatePodAddresses(status *corev1.PodStatus) field.ErrorList {
	path := statusPath.Child("podIPs")
	ips := make([]string, len(status.PodIPs))
	for i, ip := range status.PodIPs {
		ips[i] = ip.IP
	}
	errs := validateAddresses(ips, path)
	switch {
	case (status.PodIP == "") != (len(ips) == 0):
		errs = append(errs, field.Invalid(path, ips, "podIP and podIPs go together"))
	case len(ips) > 0 && ips[0] != status.PodIP:
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0], "must be equal to podIP"))
	}
	return errs
}

func validateHostAddresses(status *corev1.PodStatus) field.ErrorList {
	if len(status.HostIPs) == 0 {
		return nil
	}
	path := statusPath.Child("hostIPs")
	ips := make([]string, len(status.HostIPs))
	for i, ip := range status.HostIPs {
		ips[i] = ip.IP
	}
	errs := validateAddresses(ips, path)
	if ips[0] != status.HostIP {
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0], "must be equal to hostIP"))
	}
	return errs
}

// validateAddresses allows one address of each family.
func validateAddresses(ips []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	families := map[bool]int{}
	for i, ip := range ips {
		address, err := netip.ParseAddr(ip)
		if err != nil || address.Is4In6() || address.Zone() != "" {
			errs = append(errs, field.Invalid(path.Index(i), ip, "must be a valid IP address"))
			continue
		}
		families[address.Is4()]++
	}
	if families[true] > 1 || families[false] > 1 {
		errs = append(errs, field.Invalid(path, ips, "may have one address of each family"))
	}
	return errs
}

func validateUsers(statuses []corev1.ContainerStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, status := range statuses {
		if status.User == nil || status.User.Linux == nil {
			continue
		}
		user, path := status.User.Linux, path.Index(i).Child("user", "linux")
		if user.UID < 0 || user.UID > math.MaxUint32 {
			errs = append(errs, field.Invalid(path.Child("uid"), user.UID, fmt.Sprintf("must be between 0 and %d", int64(math.MaxUint32))))
		}
		for _, problem := range validation.IsValidGroupID(user.GID) {
			errs = append(errs, field.Invalid(path.Child("gid"), user.GID, problem))
		}
	}
	return errs
}
