// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Record is an event as it lies in the file. Its byte slices are valid until the
// call that got it returns; Event copies them.
type Record struct {
	// What counting needs is together, and points to nothing that another
	// processor has in its cache.

	Sequence journal.Sequence
	Nanos    int64 // wall clock since 1970; 0 is none
	Version  journal.Version
	Reason   journal.Reason
	Size     int // of the record, as it is stored
	// These three are filled in if Options.Pods asks for it.

	StatusSize int   // decompressed
	Pod        int32 // its number in Options.Pods; 0 if there is none
	Readiness  Readiness

	Kind        journal.Kind
	Finished    bool
	Before      int64 // Nanos of the event before it, of whatever pod
	Epoch       journal.Epoch
	Incarnation journal.Incarnation
	UID         []byte
	Namespace   []byte
	Name        []byte
	ContentType []byte

	compression uint64
	status      []byte
	rest        values         // aux, attributes, first
	whole       *journal.Event // what the record was made of, if not of bytes
}

// Of makes a record of an event that another reader has read. Size is that of its
// status.
func Of(e *journal.Event, o *Options) Record {
	r := Record{Sequence: e.Sequence, Kind: e.Kind, Epoch: e.Epoch, UID: []byte(e.UID), Namespace: []byte(e.Namespace), Name: []byte(e.Name),
		Version: e.Version, Incarnation: e.Incarnation, Finished: e.Finished, Reason: e.Reason, ContentType: []byte(e.ContentType),
		Size: len(e.Status), status: e.Status, whole: e}
	if !e.Time.IsZero() {
		r.Nanos = e.Time.UnixNano()
	}
	if o.Pods != nil {
		r.count(o.Pods, new(worker))
	}
	return r
}

// worker is what one has for itself.
type worker struct {
	prefix prefix
	seen   seen
}

// count fills in what counting needs.
func (r *Record) count(pods *Pods, w *worker) {
	r.StatusSize = r.statusSize()
	r.Pod = w.seen.number(pods, r.UID)
	r.Readiness = r.ready(&w.prefix)
}

// Time is the event's time; zero if it has none.
func (r *Record) Time() time.Time { return timeOf(r.Nanos) }

// TimeBefore is the time of the event before it, of whatever pod.
func (r *Record) TimeBefore() time.Time { return timeOf(r.Before) }

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}

// statusSize is the size of the status, decompressed.
func (r *Record) statusSize() int {
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
		Name: string(r.Name), Version: r.Version, Incarnation: r.Incarnation, Finished: r.Finished, Reason: r.Reason,
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

const (
	keyBytes = 8 // of an event's key
	// fixedElements are those of a record up to its status; the earliest records
	// have two more.
	fixedElements = 15
)

// parse reads a record that lies behind its key, its checksum first: it covers
// both, so it is one go over what follows then from the processor's cache.
func (r *Record) parse(pair []byte) error {
	body := len(pair) - sealBytes
	if body <= keyBytes || crc32.Update(0, castagnoli, pair[:body]) != be.Uint32(pair[body+1:]) || pair[body] != codeUint32 {
		return unsound("sequence %d: not sealed, or the checksum does not match", be.Uint64(pair))
	}
	b := pair[:body]
	n, p := readArray(b, keyBytes)
	if left := n - 1; left < fixedElements+2 {
		return unsound("record has %d elements", left)
	}
	var format, kind, seq, epoch, version, incarnation, finished, compression int64
	var reason []byte
	format, p = readSmall(b, p)
	kind, p = readSmall(b, p)
	seq, p = readInt(b, p)
	epoch, p = readSmall(b, p)
	r.Nanos, p = readInt(b, p)
	r.UID, p = readBytes(b, p)
	r.Namespace, p = readBytes(b, p)
	r.Name, p = readBytes(b, p)
	version, p = readInt(b, p)
	incarnation, p = readSmall(b, p)
	finished, p = readInt(b, p)
	reason, p = readBytes(b, p)
	r.ContentType, p = readBytes(b, p)
	compression, p = readSmall(b, p)
	r.status, p = readBytes(b, p)
	if p == outside || format != 1 || uint64(seq) != be.Uint64(b) {
		return unsound("sequence %d: record is of another format, or of another key", be.Uint64(b))
	}
	r.Size, r.Reason = len(pair)-keyBytes, reasonOf(reason)
	r.Kind, r.Sequence, r.Epoch, r.Version = journal.Kind(kind), journal.Sequence(seq), journal.Epoch(epoch), journal.Version(version)
	r.Incarnation, r.Finished, r.compression = journal.Incarnation(incarnation), finished == 1, uint64(compression)
	r.rest = values{b: b, p: p, left: n - 1 - fixedElements}
	return nil
}

// reasonOf makes no copies of the common ones.
func reasonOf(b []byte) journal.Reason {
	switch string(b) {
	case string(journal.ReasonSet):
		return journal.ReasonSet
	case string(journal.ReasonReadiness):
		return journal.ReasonReadiness
	case string(journal.ReasonStartup):
		return journal.ReasonStartup
	case string(journal.ReasonTerminate):
		return journal.ReasonTerminate
	case string(journal.ReasonObserved):
		return journal.ReasonObserved
	}
	return journal.Reason(b)
}
