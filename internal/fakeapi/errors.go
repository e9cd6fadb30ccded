// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	// ErrClosed is returned by methods that need a running server after Close.
	ErrClosed = errors.New("fake API server is closed")

	// ErrNoPod is returned by methods that change a pod that isn't there.
	ErrNoPod = errors.New("no such pod")

	// ErrNoAddress is returned by WriteKubeconfig for a server that isn't
	// reachable from another process.
	ErrNoAddress = errors.New("fake API server has no network address")
)

var (
	podResource = corev1.Resource("pods")
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
)

func errNotFound(name string) error { return apierrors.NewNotFound(podResource, name) }

// errExists is the answer to a second creation; a pod that is being deleted is
// named as such, because its name comes free by itself.
func errExists(pod *corev1.Pod) error {
	err := apierrors.NewAlreadyExists(podResource, pod.Name)
	if pod.DeletionTimestamp != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

func errModified(name string) error {
	return apierrors.NewConflict(podResource, name, errors.New("the object was modified meanwhile; read it again and repeat the change"))
}

func errInvalid(name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(podKind.GroupKind(), name, errs)
}

func errExpired(message string) error { return apierrors.NewResourceExpired(message) }

// errTooLargeVersion is the answer for a resourceVersion of the future: clients
// recognise the cause and list again without one.
func errTooLargeVersion(asked, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("resource version %d is larger than the current one, %d", asked, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "resource version is too large",
	}}
	return err
}

func errMethodNotAllowed() error {
	return statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "this method is not allowed here")
}

func errNoSuchPath() error {
	return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such resource")
}

func statusError(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    int32(code),
		Reason:  reason,
		Message: message,
	}}
}

// toStatus turns any error into the Status object that is sent for it.
func toStatus(err error) *metav1.Status {
	var status metav1.Status
	if apiErr := apierrors.APIStatus(nil); errors.As(err, &apiErr) {
		status = apiErr.Status()
	} else {
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}
