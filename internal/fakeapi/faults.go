// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Match says which requests are meant. An empty field means any; the zero value
// means all requests, discovery included.
type Match struct {
	Verbs       []Verb
	Namespace   string
	Name        string
	Subresource string // "status", or "-" for requests to the pod itself
	UserAgent   string
}

func (m Match) matches(t target, userAgent string) bool {
	subresource := cmp.Or(t.subresource, "-")
	return (len(m.Verbs) == 0 || slices.Contains(m.Verbs, t.verb)) &&
		(m.Namespace == "" || m.Namespace == t.namespace) &&
		(m.Name == "" || m.Name == t.name) &&
		(m.Subresource == "" || m.Subresource == subresource) &&
		(m.UserAgent == "" || m.UserAgent == userAgent)
}

// Effect is what a fault does to a request after its latency.
type Effect uint8

const (
	// Answer answers with the fault's code, or normally if it has none.
	Answer Effect = iota
	// Hang never answers. It ends when the client gives up, the fault is
	// removed (then the request is handled), the network goes down or the
	// server closes.
	Hang
	// Abort breaks the connection before the request has any effect.
	Abort
	// Truncate handles the request and breaks the connection in the middle of
	// the answer: what was asked for is done, but the client doesn't know.
	Truncate
	// Late handles the request at once and answers after the latency: what the
	// client gets is old by then.
	Late
)

// Fault is a disturbance of the requests that match.
type Fault struct {
	Match  Match
	Effect Effect

	// Code is the HTTP status to answer with, e.g. 404, 409, 422, 403, 429,
	// 500, 503. Zero: the normal answer (use it with Latency).
	Code int
	// Message replaces the usual message of the code.
	Message string
	// RetryAfter is sent with the code, in whole seconds.
	RetryAfter time.Duration
	// Latency passes before anything else happens, unless the effect is Late.
	Latency time.Duration
	// Times is how many requests are disturbed. Zero: all until removed.
	Times int
}

// Injected is a fault in force.
type Injected struct {
	faults  *faults
	fault   Fault
	removed chan struct{}

	// Guarded by faults.mu.
	hits int
	gone bool
}

// Inject puts a fault in force. Of several that match a request the one
// injected first applies, and only that.
func (s *Server) Inject(fault Fault) *Injected {
	injected := &Injected{faults: &s.faults, fault: fault, removed: make(chan struct{})}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.active = append(s.faults.active, injected)
	return injected
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() {
	for _, injected := range s.faults.all() {
		injected.Remove()
	}
}

// Remove ends the fault. Requests that hang on it are handled normally.
func (i *Injected) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	if i.gone {
		return
	}
	i.gone = true
	close(i.removed)
	i.faults.active = slices.DeleteFunc(i.faults.active, func(other *Injected) bool { return other == i })
}

// Hits is how many requests the fault has disturbed so far.
func (i *Injected) Hits() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.hits
}

type faults struct {
	// mu guards active and the counters of its elements.
	mu     sync.Mutex
	active []*Injected
}

func (f *faults) all() []*Injected {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.active)
}

// take returns the fault for a request and counts it.
func (f *faults) take(t target, userAgent string) (*Injected, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, injected := range f.active {
		times := injected.fault.Times
		if (times == 0 || injected.hits < times) && injected.fault.Match.matches(t, userAgent) {
			injected.hits++
			return injected, true
		}
	}
	return nil, false
}

// suffer applies a fault and reports whether the request is over.
func (c *call) suffer(injected *Injected) bool {
	fault := injected.fault
	if fault.Effect == Late {
		c.late = fault.Latency
		return false
	}
	if fault.Latency > 0 {
		timer := time.NewTimer(fault.Latency)
		defer timer.Stop()
		if !c.wait(timer.C, nil) {
			return true
		}
	}
	switch fault.Effect {
	case Hang:
		return !c.wait(nil, injected.removed)
	case Abort:
		panic(http.ErrAbortHandler)
	case Truncate:
		c.cut = true
	}
	if fault.Code == 0 {
		return false
	}
	c.fail(fault.err(c.target))
	return true
}

// wait returns true when the timer fires or released is closed, and false when
// there is nobody left to answer.
func (c *call) wait(timer <-chan time.Time, released <-chan struct{}) bool {
	select {
	case <-timer:
		return true
	case <-released:
		return true
	case <-c.r.Context().Done():
		return false
	case <-c.server.lostSignal():
		panic(http.ErrAbortHandler)
	case <-c.server.done:
		panic(http.ErrAbortHandler)
	}
}

// err is the Status that a real server would send with the code.
func (f Fault) err(t target) error {
	retry := int(f.RetryAfter / time.Second)
	message := cmp.Or(f.Message, "injected fault")
	cause := errors.New(message)
	var err *apierrors.StatusError
	switch f.Code {
	case http.StatusBadRequest:
		err = apierrors.NewBadRequest(message)
	case http.StatusUnauthorized:
		err = apierrors.NewUnauthorized(message)
	case http.StatusForbidden:
		err = apierrors.NewForbidden(podResource, t.name, cause)
	case http.StatusNotFound:
		err = apierrors.NewNotFound(podResource, t.name)
	case http.StatusConflict:
		err = apierrors.NewConflict(podResource, t.name, cause)
		if t.verb == Post {
			err = apierrors.NewAlreadyExists(podResource, t.name)
		}
	case http.StatusGone:
		err = apierrors.NewResourceExpired(message)
	case http.StatusUnprocessableEntity:
		err = apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), t.name,
			field.ErrorList{field.Invalid(statusPath, "", message)})
	case http.StatusTooManyRequests:
		err = apierrors.NewTooManyRequests(message, retry)
	case http.StatusInternalServerError:
		err = apierrors.NewInternalError(cause)
	case http.StatusServiceUnavailable:
		err = apierrors.NewServiceUnavailable(message)
	case http.StatusGatewayTimeout:
		err = apierrors.NewTimeoutError(message, retry)
	default:
		err = statusError(f.Code, metav1.StatusReasonUnknown, fmt.Sprintf("%s (%s)", message, http.StatusText(f.Code)))
	}
	if retry > 0 {
		if err.ErrStatus.Details == nil {
			err.ErrStatus.Details = &metav1.StatusDetails{}
		}
		err.ErrStatus.Details.RetryAfterSeconds = int32(retry)
	}
	if f.Message != "" {
		err.ErrStatus.Message = f.Message
	}
	return err
}
