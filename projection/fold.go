// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// changesPod reports whether events of the kind change a pod. Rejected and opened
// events do not, nor do kinds of a newer release, which are skipped.
func changesPod(k journal.Kind) bool {
	switch k {
	case journal.KindSet, journal.KindFinished, journal.KindRemoved:
		return true
	default:
		return false
	}
}

// fold returns the entry that follows prev when e is applied; nil after a removal.
// e must be of a kind that changes pods. On an error the entry stays prev.
func fold(prev *Entry, e journal.Event) (*Entry, error) {
	if e.UID == "" {
		return prev, eventError(e, ErrNoUID)
	}
	if prev != nil && e.Version <= prev.Version {
		return prev, eventError(e, fmt.Errorf("version %d after %d: %w", e.Version, prev.Version, ErrOutOfOrder))
	}
	if e.Kind == journal.KindRemoved {
		return nil, nil
	}
	status, err := decodeStatus(e)
	if err != nil {
		return prev, eventError(e, err)
	}
	next := &Entry{
		UID: e.UID, Namespace: e.Namespace, Name: e.Name,
		Version: e.Version, Incarnation: e.Incarnation,
		Sequence: e.Sequence, Epoch: e.Epoch, Time: e.Time, Reason: e.Reason,
		Finished: e.Finished || e.Kind == journal.KindFinished,
		Status:   status, Aux: e.Aux,
		PendingSince: e.Time,
	}
	// The removal in between may have been trimmed: an earlier incarnation
	// leaves nothing to its successor.
	if prev != nil && prev.Incarnation == e.Incarnation {
		next.Finished = next.Finished || prev.Finished
		next.Acked, next.AckedUID = prev.Acked, prev.AckedUID
		if prev.Pending() {
			next.PendingSince = prev.PendingSince
		}
	}
	return next, nil
}

// foldAck returns the entry with the ack. An ack never goes down for the same
// live object, and never above the version (G2).
func foldAck(prev *Entry, a journal.Ack) *Entry {
	version := min(a.Version, prev.Version)
	if a.LiveUID == prev.AckedUID && version <= prev.Acked {
		return prev
	}
	next := *prev
	next.Acked, next.AckedUID = version, a.LiveUID
	switch {
	case !next.Pending():
		next.PendingSince = time.Time{}
	case prev.Pending() && version > prev.Acked:
		// The oldest version left is newer than the one acked; when it was made is
		// not kept. The newest event's time errs by less than one request took.
		next.PendingSince = next.Time
	case !prev.Pending():
		// Another object on the server, which lacks what the old one had.
		next.PendingSince = a.Time
	}
	return &next
}

// foldNoAck returns the entry without its ack: since now, the server is known to
// differ.
func foldNoAck(prev *Entry, now time.Time) *Entry {
	if prev.Acked == 0 && prev.AckedUID == "" {
		return prev
	}
	next := *prev
	next.Acked, next.AckedUID = 0, ""
	if !prev.Pending() {
		next.PendingSince = now
	}
	return &next
}

// decodeStatus takes the decoded form that came along, or decodes the bytes.
func decodeStatus(e journal.Event) (*v1.PodStatus, error) {
	if s, ok := e.Payload.(*v1.PodStatus); ok && s != nil {
		return s, nil
	}
	if e.ContentType != journal.ContentTypeProtobuf {
		return nil, fmt.Errorf("%w %q", ErrContentType, e.ContentType)
	}
	return podstatus.Decode(e.Status)
}

func eventError(e journal.Event, err error) error {
	return &EventError{UID: e.UID, Sequence: e.Sequence, Err: err}
}
