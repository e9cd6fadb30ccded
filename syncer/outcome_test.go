// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestClassify(t *testing.T) {
	pods := v1.Resource("pods")
	invalid := func(path string) error {
		return apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "web-0",
			field.ErrorList{field.Invalid(field.NewPath(path), "", "no")})
	}
	generic := func(code, retryAfter int) error {
		return apierrors.NewGenericServerResponse(code, "PATCH", pods, "web-0", "text", retryAfter, true)
	}
	dial := &url.Error{Op: "Patch", URL: "http://x", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	read := &url.Error{Op: "Patch", URL: "http://x", Err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}

	type short struct {
		Class      class
		Fault      fault
		Code       int
		Reason     string
		RetryAfter time.Duration
	}
	tests := []struct {
		name string
		err  error
		want short
	}{
		{"404", apierrors.NewNotFound(pods, "web-0"), short{Class: classGone, Code: 404, Reason: "NotFound"}},
		{"409", apierrors.NewConflict(pods, "web-0", errors.New("uid")), short{Class: classConflict, Code: 409, Reason: "Conflict"}},
		{"422 of the UID", invalid("metadata.uid"), short{Class: classConflict, Code: 422, Reason: "Invalid"}},
		{"422", invalid("status.containerStatuses"), short{Class: classRefused, Code: 422, Reason: "Invalid"}},
		{"403", apierrors.NewForbidden(pods, "web-0", nil), short{Class: classRefused, Code: 403, Reason: "Forbidden"}},
		{"400", apierrors.NewBadRequest("no"), short{Class: classRefused, Code: 400, Reason: "BadRequest"}},
		{"413", apierrors.NewRequestEntityTooLargeError("no"), short{Class: classRefused, Code: 413, Reason: "RequestEntityTooLarge"}},
		{"429", apierrors.NewTooManyRequests("no", 3), short{Class: classThrottled, Code: 429, Reason: "TooManyRequests", RetryAfter: 3 * time.Second}},
		{"401", apierrors.NewUnauthorized("no"), short{Class: classServer, Code: 401, Reason: "Unauthorized"}},
		{"500", apierrors.NewInternalError(errors.New("no")), short{Class: classServer, Code: 500, Reason: "InternalError"}},
		{"503 with a wish", generic(503, 7), short{Class: classServer, Code: 503, Reason: "ServiceUnavailable", RetryAfter: 7 * time.Second}},
		{"504", apierrors.NewTimeoutError("no", 0), short{Class: classServer, Code: 504, Reason: "Timeout"}},
		{"a code without a name", generic(418, 0), short{Class: classRefused, Code: 418, Reason: "I'mateapot"}},
		{"refused connection", dial, short{Class: classServer, Fault: faultDead, Reason: "Unreachable"}},
		{"unknown host", &net.DNSError{Err: "no such host"}, short{Class: classServer, Fault: faultDead, Reason: "Unreachable"}},
		{"reset connection", read, short{Class: classServer, Reason: "ConnectionBroken"}},
		{"cut answer", io.ErrUnexpectedEOF, short{Class: classServer, Reason: "ConnectionBroken"}},
		{"our timeout", errors.Join(errRequestTimeout, context.DeadlineExceeded), short{Class: classServer, Fault: faultSlow, Reason: "Timeout"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := classify(t.Context(), fmt.Errorf("patch status: %w", tt.err))
			got := short{o.class, o.fault, o.code, o.reason, o.retryAfter}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.message == "" {
				t.Error("no message")
			}
		})
	}
}

func TestClassify_StopIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := classify(ctx, context.Canceled); o.class != classStop {
		t.Errorf("class %d", o.class)
	}
	// An answer that came in time counts all the same.
	if o := classify(ctx, apierrors.NewBadRequest("no")); o.class != classRefused {
		t.Errorf("class %d", o.class)
	}
}

func TestClassify_MessageIsBounded(t *testing.T) {
	o := classify(t.Context(), errors.New(strings.Repeat("ä", 100_000)))
	if len(o.message) > maxMessageBytes+3 || !utf8.ValidString(o.message) {
		t.Errorf("%d bytes, valid %v", len(o.message), utf8.ValidString(o.message))
	}
}
