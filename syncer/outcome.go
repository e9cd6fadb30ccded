// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// class is what a failed request means for its pod.
type class uint8

const (
	classStop      class = iota // we are stopping; it means nothing
	classGone                   // the pod is not there
	classConflict               // perhaps another pod has the name
	classRefused                // the server doesn't want it; the pod is failing
	classThrottled              // the server wants less
	classServer                 // the server didn't do its work; the pod may be fine
)

// fault tells failures of class classServer apart, for the circuit.
type fault uint8

const (
	faultSick fault = iota // an answer of 5xx, or a broken connection
	faultSlow              // no answer in time
	faultDead              // no connection
)

// outcome is what became of a request that failed.
type outcome struct {
	class      class
	fault      fault
	invalid    bool          // of class classRefused: it is about the content
	code       int           // HTTP status; 0 if there was no answer
	reason     string        // one word, as Failing and metrics show it
	message    string        // the server's text, shortened
	retryAfter time.Duration // what the server asked for; 0 if it didn't
}

// maxMessageBytes bounds what is kept and logged of a server's message: a 422
// repeats the whole offending value.
const maxMessageBytes = 1024

// classify is the only place that looks at status codes. The context is the one
// that the syncer runs under, without the request's own timeout.
func classify(ctx context.Context, err error) outcome {
	o := outcome{message: shorten(err.Error())}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case ctx.Err() != nil && !answered:
		o.class, o.reason = classStop, "Stopped"
	case answered:
		o.fromStatus(status.Status())
	default:
		o.class = classServer
		o.fault, o.reason = connectionFault(err)
	}
	return o
}

func (o *outcome) fromStatus(s metav1.Status) {
	o.code, o.reason = int(s.Code), string(s.Reason)
	if o.reason == "" || s.Reason == metav1.StatusReasonUnknown {
		o.reason = strings.ReplaceAll(http.StatusText(o.code), " ", "")
	}
	if s.Details != nil {
		o.retryAfter = time.Duration(s.Details.RetryAfterSeconds) * time.Second
	}
	switch {
	case s.Code == http.StatusNotFound || s.Code == http.StatusGone:
		o.class = classGone
	case s.Code == http.StatusConflict || refusesUID(s):
		o.class = classConflict
	case s.Code == http.StatusTooManyRequests:
		o.class = classThrottled
	// 401 is about us, not about the pod: every other pod would get it, too.
	case s.Code == http.StatusUnauthorized || s.Code == http.StatusRequestTimeout:
		o.class = classServer
	case s.Code >= 400 && s.Code < 500:
		o.class, o.invalid = classRefused, s.Code == http.StatusUnprocessableEntity
	default:
		o.class = classServer
	}
}

// refusesUID recognises a patch for another UID: for the server an attempt to
// change an immutable field.
func refusesUID(s metav1.Status) bool {
	if s.Code != http.StatusUnprocessableEntity || s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if c.Field == "metadata.uid" {
			return true
		}
	}
	return false
}

// otherNode is the outcome of a look at a pod that is not bound to this node.
func otherNode(bound, node string) outcome {
	message := fmt.Sprintf("pod is bound to node %q, this is node %q: nothing is sent", bound, node)
	if bound == "" {
		message = fmt.Sprintf("pod is not bound to a node, this is node %q: nothing is sent", node)
	}
	return outcome{class: classRefused, reason: "OtherNode", message: message}
}

func connectionFault(err error) (fault, string) {
	if errors.Is(err, errRequestTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return faultSlow, "Timeout"
	}
	// A connection that can't be made says nothing about the pod.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return faultDead, "Unreachable"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return faultDead, "Unreachable"
	}
	return faultSick, "ConnectionBroken"
}

func shorten(s string) string {
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
}
