// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Errors of an update.
var (
	// ErrIllegalTransition is in the chain of every TransitionError.
	ErrIllegalTransition = errors.New("illegal status transition")
	// ErrContainerNotFound is returned by SetReady and SetStarted when neither a
	// regular nor an init container status has the container ID (SEMANTICS 16, 17).
	ErrContainerNotFound = errors.New("no container with this ID in the pod status")
)

// Errors of the codec.
var (
	// ErrMalformed is returned by Decode for bytes that are not an encoded
	// v1.PodStatus.
	ErrMalformed = errors.New("malformed pod status")
	// ErrNoStatus is returned by Encode for a nil status.
	ErrNoStatus = errors.New("no pod status")
)

// TransitionError says which change of a status was refused and why
// (SEMANTICS 15, 55, 67-72).
type TransitionError struct {
	// UID of the pod the update was for.
	UID types.UID
	// Container is the name of the container whose state was refused. It is
	// empty when the phase was.
	Container string
	// From and To are phases, or container states: waiting, running, terminated,
	// absent.
	From, To string
	// Reason is one clause that says which rule stands in the way.
	Reason string
}

// Error names the pod, the container or the phase, the change and the reason.
func (e *TransitionError) Error() string {
	subject := "phase"
	if e.Container != "" {
		subject = fmt.Sprintf("container %q", e.Container)
	}
	return fmt.Sprintf("%v: pod %s: %s may not go from %q to %q: %s",
		ErrIllegalTransition, e.UID, subject, e.From, e.To, e.Reason)
}

// Unwrap returns ErrIllegalTransition.
func (e *TransitionError) Unwrap() error { return ErrIllegalTransition }
