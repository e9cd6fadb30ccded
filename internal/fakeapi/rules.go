// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
	statusPath   = field.NewPath("status")
)

func errOtherUID(resource schema.GroupResource, name string, want, got types.UID) error {
	return apierrors.NewConflict(resource, name,
		fmt.Errorf("precondition failed: the UID in the request is %s, that of the object is %s", want, got))
}

// prepareCreate turns what a client sent into a new pod: with a UID, a time, a
// class, and the status Pending whatever the client says.
func prepareCreate(pod *corev1.Pod) error {
	if pod.ResourceVersion != "" {
		return apierrors.NewInternalError(fmt.Errorf("resourceVersion should not be set on objects to be created"))
	}
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName + rand.String(5)
	}
	pod.UID = uuid.NewUUID()
	pod.CreationTimestamp = metav1.Now().Rfc3339Copy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = nil, nil
	pod.ManagedFields = nil
	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qosClass(&pod.Spec)}

	errs := metavalidation.ValidateObjectMeta(&pod.ObjectMeta, true, metavalidation.NameIsDNSSubdomain, metadataPath)
	if errs = append(errs, validateContainers(&pod.Spec)...); len(errs) > 0 {
		return errInvalid(pod.Name, errs)
	}
	return nil
}

func validateContainers(spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(specPath.Child("containers"), ""))
	}
	seen := map[string]bool{}
	check := func(containers []corev1.Container, path *field.Path) {
		for i, container := range containers {
			switch {
			case container.Name == "":
				errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
			case seen[container.Name]:
				errs = append(errs, field.Duplicate(path.Index(i).Child("name"), container.Name))
			}
			if container.Image == "" {
				errs = append(errs, field.Required(path.Index(i).Child("image"), ""))
			}
			seen[container.Name] = true
		}
	}
	check(spec.Containers, specPath.Child("containers"))
	check(spec.InitContainers, specPath.Child("initContainers"))
	return errs
}

// prepareUpdate applies the rules for a write to the pod itself: the status
// stays, and of the spec only a few fields may change.
func prepareUpdate(next, old *corev1.Pod) error {
	if err := checkVersion(next, old); err != nil {
		return err
	}
	next.Generation = old.Generation
	next.Status = *old.Status.DeepCopy()
	keepMetadata(next, old)
	specChanged := !equality.Semantic.DeepEqual(next.Spec, old.Spec)
	if specChanged {
		next.Generation++
	}
	errs := metavalidation.ValidateObjectMetaUpdate(&next.ObjectMeta, &old.ObjectMeta, metadataPath)
	if specChanged && !equality.Semantic.DeepEqual(withMutable(next.Spec, old.Spec), old.Spec) {
		errs = append(errs, field.Forbidden(specPath, "of a pod only the images, tolerations and activeDeadlineSeconds may change"))
	}
	if len(errs) > 0 {
		return errInvalid(old.Name, errs)
	}
	return nil
}

// withMutable is spec with the fields that may change taken from old.
func withMutable(spec, old corev1.PodSpec) corev1.PodSpec {
	reset := *spec.DeepCopy()
	resetImages := func(containers, from []corev1.Container) {
		for i := range min(len(containers), len(from)) {
			containers[i].Image = from[i].Image
		}
	}
	resetImages(reset.Containers, old.Containers)
	resetImages(reset.InitContainers, old.InitContainers)
	reset.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	reset.Tolerations = old.Tolerations
	return reset
}

// checkVersion is the optimistic lock: a resourceVersion in the new object has
// to be that of the old one; without one the write is unconditional.
func checkVersion(next, old *corev1.Pod) error {
	if next.ResourceVersion != "" && next.ResourceVersion != old.ResourceVersion {
		return errModified(old.Name)
	}
	next.ResourceVersion = old.ResourceVersion
	return nil
}

// keepMetadata undoes changes that a write ignores rather than refuses.
func keepMetadata(next, old *corev1.Pod) {
	if next.UID == "" {
		next.UID = old.UID
	}
	next.CreationTimestamp = old.CreationTimestamp
	if old.DeletionTimestamp != nil {
		next.DeletionTimestamp = old.DeletionTimestamp.DeepCopy()
	}
	if next.DeletionGracePeriodSeconds == nil && old.DeletionGracePeriodSeconds != nil {
		next.DeletionGracePeriodSeconds = new(*old.DeletionGracePeriodSeconds)
	}
}
