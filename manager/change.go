// SPDX-License-Identifier: Apache-2.0

package manager

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// Change is what a call did to a pod.
type Change struct {
	// UID under which the status is stored: the static pod's for a mirror pod.
	UID types.UID
	// Changed says whether a new version was made.
	Changed bool
	// Version and Sequence are those of the stored status, new or not.
	Version  journal.Version
	Sequence journal.Sequence

	stored *v1.PodStatus
}

// Status returns a copy of what is stored, made by this call; the caller may keep
// and change it. Nil in a Change that came with an error.
func (c Change) Status() *v1.PodStatus { return c.stored.DeepCopy() }

// unchanged is the Change of a call that made no version.
func unchanged(e *projection.Entry) Change {
	return Change{UID: e.UID, Version: e.Version, Sequence: e.Sequence, stored: e.Status}
}

// Outcome says what a call about one container or volume did (SEMANTICS 22).
type Outcome uint8

// The outcomes. All but the first two come with an error.
const (
	// OutcomeNone comes with errors that are not about the pod, such as
	// journal.ErrDegraded.
	OutcomeNone Outcome = iota
	// OutcomeApplied: a new version was made and is durable.
	OutcomeApplied
	// OutcomeUnchanged: the stored status says so already.
	OutcomeUnchanged
	// OutcomeUnknownPod comes with ErrUnknownPod.
	OutcomeUnknownPod
	// OutcomeNoStatus comes with ErrNoStatus.
	OutcomeNoStatus
	// OutcomeUnknownContainer comes with ErrUnknownContainer.
	OutcomeUnknownContainer
)

// String returns the name used in output.
func (o Outcome) String() string {
	switch o {
	case OutcomeApplied:
		return "applied"
	case OutcomeUnchanged:
		return "unchanged"
	case OutcomeUnknownPod:
		return "unknown pod"
	case OutcomeNoStatus:
		return "no status yet"
	case OutcomeUnknownContainer:
		return "unknown container"
	default:
		return "none"
	}
}
