// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

// Reasons that Kubernetes has no word for.
const (
	ReasonPreconditionFailed  metav1.StatusReason = "PreconditionFailed"  // 412
	ReasonInsufficientStorage metav1.StatusReason = "InsufficientStorage" // 507
)

// retryAfterSeconds is what a client is told to wait when the disk refuses writes.
const retryAfterSeconds = 5

// podResource is what Kubernetes' messages call pods.
var podResource = schema.GroupResource{Resource: "pods"}

// errSlowDisk ends the wait for a commit.
var errSlowDisk = errors.New("the disk did not answer in time")

// statusError makes an error with a code and reason of its own.
func statusError(code int, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func tooLarge(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}

func unsupportedMediaType(contentType, supported string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request has the unsupported media type %q; use %s", contentType, supported)
}

// expired is 410: the client has to list again.
func expired(format string, args ...any) error {
	return apierrors.NewResourceExpired(fmt.Sprintf(format, args...))
}

// invalid is 422 with the field at fault.
func invalid(name, field, message string) error {
	return withCause(statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "pod %q is invalid: %s: %s", name, field, message),
		metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: message})
}

func withCause(err error, causes ...metav1.StatusCause) error {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		if s.ErrStatus.Details == nil {
			s.ErrStatus.Details = &metav1.StatusDetails{Kind: podResource.Resource}
		}
		s.ErrStatus.Details.Causes = append(s.ErrStatus.Details.Causes, causes...)
	}
	return err
}

// statusOf is the one place that turns errors into answers.
func statusOf(err error) metav1.Status {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: err.Error(),
	}
	become := func(code int, reason metav1.StatusReason, details *metav1.StatusDetails) {
		status.Code, status.Reason, status.Details = int32(code), reason, details
	}
	pods := &metav1.StatusDetails{Kind: podResource.Resource}
	var own *apierrors.StatusError
	var illegal *podstatus.TransitionError
	var bad *manager.InvalidError
	var otherUID *manager.UIDConflictError
	var otherVersion *manager.VersionConflictError
	switch {
	case errors.As(err, &own):
		status = *own.ErrStatus.DeepCopy()
	case errors.As(err, &illegal):
		pods.UID = illegal.UID
		cause := metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "status.phase", Message: illegal.Reason}
		if illegal.Container != "" {
			cause.Field = fmt.Sprintf("status.containerStatuses[%s].state", illegal.Container)
		}
		pods.Causes = []metav1.StatusCause{cause}
		become(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, pods)
	case errors.As(err, &bad):
		pods.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid, Field: bad.Field, Message: bad.Detail}}
		become(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, pods)
	case errors.As(err, &otherUID):
		pods.UID, pods.Name = otherUID.UID, otherUID.Given.Name
		become(http.StatusConflict, metav1.StatusReasonConflict, pods)
	case errors.As(err, &otherVersion):
		pods.UID = otherVersion.UID
		become(http.StatusPreconditionFailed, ReasonPreconditionFailed, pods)
	case errors.Is(err, manager.ErrUnknownContainer):
		become(http.StatusNotFound, metav1.StatusReasonNotFound, &metav1.StatusDetails{Kind: "containers"})
	case errors.Is(err, manager.ErrUnknownPod), errors.Is(err, manager.ErrNoStatus), errors.Is(err, journal.ErrNoPod):
		become(http.StatusNotFound, metav1.StatusReasonNotFound, pods)
	case errors.Is(err, journal.ErrTooLarge):
		become(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, pods)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		become(http.StatusInsufficientStorage, ReasonInsufficientStorage, &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds})
	case errors.Is(err, journal.ErrDegraded):
		become(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds})
	case errors.Is(err, journal.ErrClosed):
		become(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, &metav1.StatusDetails{RetryAfterSeconds: 1})
	case errors.Is(err, errSlowDisk), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		become(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, nil)
	case errors.Is(err, podstatus.ErrMalformed):
		become(http.StatusBadRequest, metav1.StatusReasonBadRequest, pods)
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

// writeError answers with a metav1.Status. Nothing may have been written before.
func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}
