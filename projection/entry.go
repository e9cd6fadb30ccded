// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Entry is one pod in the projection. Entries are immutable once published:
// readers share them without locks and must not modify anything they reach.
// Copy Status before it leaves the process' own code.
type Entry struct {
	UID         types.UID // of the pod the node runs; never a mirror's
	Namespace   string
	Name        string
	Version     journal.Version
	Incarnation journal.Incarnation
	Sequence    journal.Sequence // of the newest event
	Epoch       journal.Epoch
	Time        time.Time // of the newest event
	Reason      journal.Reason
	Finished    bool
	Status      *v1.PodStatus
	Aux         []byte // see journal.Event

	// Acked is the newest version that the server is known to hold, in the
	// object with AckedUID (the mirror's UID for a static pod). 0 is none.
	Acked    journal.Version
	AckedUID types.UID
	// PendingSince is the time of the oldest version that is not acked; zero
	// when there is none.
	PendingSince time.Time
}

// Pending reports whether the newest version is not acked yet.
func (e *Entry) Pending() bool { return e.Version > e.Acked }
