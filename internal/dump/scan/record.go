// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"time"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Record is an event as it lies in the file. Its byte slices are valid until the
// call that got it returns; Event copies them.
type Record struct {
	Sequence    journal.Sequence
	Kind        journal.Kind
	Epoch       journal.Epoch
	Nanos       int64 // wall clock since 1970; 0 is none
	UID         []byte
	Namespace   []byte
	Name        []byte
	Version     journal.Version
	Incarnation journal.Incarnation
	Finished    bool
	Reason      []byte
	ContentType []byte

	// Readiness is filled in if Options.Readiness asks for it.
	Readiness Readiness

	Size        int // of the record, as it is stored
	compression uint64
	status      []byte
	rest        values         // aux, attributes, first
	whole       *journal.Event // what the record was made of, if not of bytes
}

// Of makes a record of an event that another reader has read. Size is that of its
// status.
func Of(e *journal.Event) Record {
	r := Record{Sequence: e.Sequence, Kind: e.Kind, Epoch: e.Epoch, UID: []byte(e.UID), Namespace: []byte(e.Namespace), Name: []byte(e.Name),
		Version: e.Version, Incarnation: e.Incarnation, Finished: e.Finished, Reason: []byte(e.Reason), ContentType: []byte(e.ContentType),
		Size: len(e.Status), status: e.Status, whole: e}
	if !e.Time.IsZero() {
		r.Nanos = e.Time.UnixNano()
	}
	r.Readiness = r.Ready()
	return r
}

// Time is the event's time; zero if it has none.
func (r *Record) Time() time.Time { return timeOf(r.Nanos) }

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// StatusBytes is the size of the status, decompressed.
func (r *Record) StatusBytes() int {
	if r.compression == 0 {
		return len(r.status)
	}
	n, err := s2.DecodedLen(r.status)
	if err != nil {
		return 0 // Event tells
	}
	return n
}

// Event returns the record as journal.Reader would.
func (r *Record) Event() (journal.Event, error) {
	if r.whole != nil {
		return *r.whole, nil
	}
	e := journal.Event{Sequence: r.Sequence, Kind: r.Kind, Epoch: r.Epoch, Time: r.Time(), UID: types.UID(r.UID), Namespace: string(r.Namespace),
		Name: string(r.Name), Version: r.Version, Incarnation: r.Incarnation, Finished: r.Finished, Reason: journal.Reason(r.Reason),
		ContentType: journal.ContentType(r.ContentType)}
	rest := r.rest
	if aux := rest.bytes(); len(aux) > 0 {
		e.Aux = append([]byte(nil), aux...)
	}
	e.Attributes = rest.attributes()
	if rest.left > 0 { // the earliest records end before it
		e.First = rest.uint() == 1
	}
	status, err := r.open()
	if err != nil || rest.bad() {
		return e, unsound("sequence %d: %w", r.Sequence, err)
	}
	if len(status) > 0 {
		e.Status = status
	}
	return e, nil
}

// open returns a copy of the status, decompressed.
func (r *Record) open() ([]byte, error) {
	switch r.compression {
	case 0:
		return append([]byte(nil), r.status...), nil
	case 1:
		if n, err := s2.DecodedLen(r.status); err != nil || n > journal.MaxStatusBytes {
			return nil, unsound("status of %d bytes", n)
		}
		return s2.Decode(nil, r.status)
	default:
		return nil, unsound("compression %d", r.compression)
	}
}

// Attribute returns one attribute.
func (r *Record) Attribute(key string) string {
	if r.whole != nil {
		return r.whole.Attributes[key]
	}
	rest := r.rest
	rest.bytes()
	return rest.attributes()[key]
}

// fixedElements are those of a record up to its status; the earliest records have
// two more.
const fixedElements = 15

// parse reads a record, its checksum first.
func (r *Record) parse(key, value []byte) error {
	v, err := unseal(key, value)
	if err != nil {
		return err
	}
	if v.left < fixedElements+2 {
		return unsound("record has %d elements", v.left)
	}
	b, p := v.b, v.p
	var format, kind, seq, epoch, version, incarnation, finished, compression int64
	format, p = readInt(b, p)
	kind, p = readInt(b, p)
	seq, p = readInt(b, p)
	epoch, p = readInt(b, p)
	r.Nanos, p = readInt(b, p)
	r.UID, p = readBytes(b, p)
	r.Namespace, p = readBytes(b, p)
	r.Name, p = readBytes(b, p)
	version, p = readInt(b, p)
	incarnation, p = readInt(b, p)
	finished, p = readInt(b, p)
	r.Reason, p = readBytes(b, p)
	r.ContentType, p = readBytes(b, p)
	compression, p = readInt(b, p)
	r.status, p = readBytes(b, p)
	if p == outside || format != 1 || uint64(seq) != be.Uint64(key) {
		return unsound("sequence %d: record is of another format, or of another key", be.Uint64(key))
	}
	r.Size = len(value)
	r.Kind, r.Sequence, r.Epoch, r.Version = journal.Kind(kind), journal.Sequence(seq), journal.Epoch(epoch), journal.Version(version)
	r.Incarnation, r.Finished, r.compression = journal.Incarnation(incarnation), finished == 1, uint64(compression)
	r.rest = values{b: b, p: p, left: v.left - fixedElements}
	return nil
}
