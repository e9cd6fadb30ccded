// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Sequence is the place of an event in the journal. The first event has
// sequence 1; sequences are contiguous and never used twice.
type Sequence uint64

// Version counts the statuses of one pod UID. It grows by one per event and is
// never given to different content twice, also across restarts and removal.
type Version uint64

// Epoch is raised at each open of a journal for writing.
type Epoch uint64

// Incarnation counts the lives of a pod UID: it grows by one when a status is
// set after the UID was removed, or when its writer says so. The first is 1.
type Incarnation uint32

// Kind says what an event does to the projection.
type Kind uint8

// The kinds. Numbers are part of the file format; see docs/format.md.
const (
	// KindSet stores a status. Its Reason says which call made it.
	KindSet Kind = 1
	// KindFinished stores the durable finished mark: the pod's resources are
	// reclaimed and its object may be deleted. It repeats the status.
	KindFinished Kind = 2
	// KindRemoved drops the pod. It leaves a tombstone that remembers the version.
	KindRemoved Kind = 3
	// KindRejected records a refused update. It changes nothing.
	KindRejected Kind = 4
	// KindOpened records that the journal was opened for writing.
	KindOpened Kind = 5
)

var kindNames = map[Kind]string{
	KindSet: "set", KindFinished: "finished", KindRemoved: "removed",
	KindRejected: "rejected", KindOpened: "opened",
}

// String returns the name used in output, or "kind(N)" for one that this
// program does not know.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of Kind.String for known kinds.
func ParseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return k, true
		}
	}
	return 0, false
}

// Reason says why a set or removed event happened.
type Reason string

// The reasons of set events, and of removed ones.
const (
	ReasonSet       Reason = "set"
	ReasonReadiness Reason = "readiness"
	ReasonStartup   Reason = "startup"
	ReasonTerminate Reason = "terminate"
	ReasonResize    Reason = "resize"
	ReasonVolume    Reason = "volume"
	ReasonObserved  Reason = "observed"

	ReasonOrphaned  Reason = "orphaned"
	ReasonDeleted   Reason = "deleted"
	ReasonRecreated Reason = "recreated"
)

// ContentType names the encoding of an event's status bytes.
type ContentType string

// ContentTypeProtobuf is a k8s.io/api/core/v1 PodStatus as Kubernetes protobuf.
const ContentTypeProtobuf ContentType = "protobuf"

// Event is one committed change of one pod, or the opening of the journal.
// Each set and finished event carries the pod's whole state, so a pod's newest
// event (rejected ones aside) is all that is needed to know it.
type Event struct {
	Kind Kind

	// Sequence, Epoch, Time, Version and Incarnation are assigned by Append;
	// what the caller put there is ignored. A rejected event repeats the
	// version that it left unchanged, 0 for an unknown pod.
	Sequence    Sequence
	Epoch       Epoch
	Time        time.Time // wall clock, UTC, nanoseconds
	Version     Version
	Incarnation Incarnation

	UID       types.UID
	Namespace string
	Name      string
	Reason    Reason

	// First marks the first event of an incarnation. A version of 1 does not tell,
	// since versions go on where earlier ones were forgotten. Append sets it for
	// pods that are new or were removed; who sets it in a set event begins an
	// incarnation of a pod that is there.
	First bool

	// Finished is the durable mark. Append keeps it set on all later events of
	// the same incarnation.
	Finished bool

	// Status is opaque to the journal. At most MaxStatusBytes.
	ContentType ContentType
	Status      []byte
	// Aux is per-pod state beside the status (resize conditions), opaque too.
	Aux []byte
	// Attributes explain rejected and opened events; nil otherwise.
	Attributes map[string]string

	// Essential events may use the space that is kept for when the disk is full,
	// as finished and removed ones always may. It is not stored.
	Essential bool
	// Object, when not nil, replaces the pod object remembered for the UID in the
	// same commit (see Journal.Objects). It is not part of the event: reading
	// the event back leaves it nil.
	Object []byte
	// Payload is handed through Append to OnCommit untouched and is never
	// stored: the decoded form of Status, which spares the projection decoding it.
	Payload any
}

// Attribute keys.
const (
	AttrClean     = "clean"     // opened: "true" if the previous run closed the journal
	AttrSoftware  = "software"  // opened: version of the program
	AttrBootID    = "bootID"    // opened: the kernel's boot id
	AttrSuspect   = "suspect"   // opened: "true" if the last commit before may be lost
	AttrRestored  = "restored"  // opened: why the file is taken for a copy that was put back
	AttrContainer = "container" // rejected: the container that was refused
	AttrMessage   = "message"   // rejected: why
	AttrFrom      = "from"      // rejected: the state or phase that is stored
	AttrTo        = "to"        // rejected: the state or phase that was asked for
)

// MaxStatusBytes bounds Event.Status and Event.Object.
const MaxStatusBytes = 4 << 20

// Ack says that the API server is known to hold a version of a pod's status.
// Acks are hints: what the server holds decides.
type Ack struct {
	UID     types.UID // of the pod the node runs (resolved)
	LiveUID types.UID // of the object on the server: the mirror's for a static pod
	Version Version
	Time    time.Time
}
