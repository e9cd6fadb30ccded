// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/types"
)

// recordFormat is the first element of an event's record. A reader refuses a
// higher one; elements appended at the end do not raise it.
const recordFormat = 1

// recordElements are the fixed elements of format 1, in order:
//
//	format kind sequence epoch time uid namespace name version incarnation
//	finished reason contentType compression status aux attributes first
const recordElements = 18

// compression of the status bytes.
const (
	compressionNone = 0
	compressionS2   = 1
)

// payload is a status in the form that is written. Compressing before the
// event is queued keeps that work out of the commit, which is one at a time.
type payload struct {
	compression uint64
	data        []byte
}

// newPayload compresses what becomes smaller by it.
func newPayload(status []byte) payload {
	if len(status) < 64 {
		return payload{compressionNone, status}
	}
	if c := s2.Encode(nil, status); len(c) < len(status) {
		return payload{compressionS2, c}
	}
	return payload{compressionNone, status}
}

func (p payload) open() ([]byte, error) {
	switch p.compression {
	case compressionNone:
		return p.data, nil
	case compressionS2:
		n, err := s2.DecodedLen(p.data)
		if err != nil {
			return nil, err
		}
		if n > MaxStatusBytes {
			return nil, fmt.Errorf("%w: status of %d bytes", errShape, n)
		}
		return s2.Decode(nil, p.data)
	default:
		return nil, fmt.Errorf("%w: compression %d", errShape, p.compression)
	}
}

// encodeRecord returns the value of e under its sequence key.
func encodeRecord(s *sealer, key []byte, e *Event, p payload) []byte {
	s.begin(recordElements)
	s.uint(recordFormat)
	s.uint(uint64(e.Kind))
	s.uint(uint64(e.Sequence))
	s.uint(uint64(e.Epoch))
	s.time(e.Time)
	s.string(string(e.UID))
	s.string(e.Namespace)
	s.string(e.Name)
	s.uint(uint64(e.Version))
	s.uint(uint64(e.Incarnation))
	s.bool(e.Finished)
	s.string(string(e.Reason))
	s.string(string(e.ContentType))
	s.uint(p.compression)
	s.bytes(p.data)
	s.bytes(e.Aux)
	s.array(2 * len(e.Attributes))
	for _, k := range slices.Sorted(maps.Keys(e.Attributes)) {
		s.string(k)
		s.string(e.Attributes[k])
	}
	s.bool(e.First)
	return s.finish(key)
}

// decodeRecord is the inverse. Unknown kinds are returned as they are: a reader
// skips them, it does not drop them.
func decodeRecord(key, value []byte) (Event, error) {
	var e Event
	seq, ok := parseSequenceKey(key)
	if !ok {
		return e, fmt.Errorf("%w: key of %d bytes", errShape, len(key))
	}
	e.Sequence = seq
	o, err := unseal(key, value)
	if err != nil {
		return e, err
	}
	if f := o.uint(); o.err == nil && f > recordFormat {
		return e, fmt.Errorf("%w: record format %d, this program reads %d", ErrNewerFormat, f, recordFormat)
	}
	e.Kind = Kind(o.uint())
	stored := Sequence(o.uint())
	e.Epoch = Epoch(o.uint())
	e.Time = o.time()
	e.UID = types.UID(o.string())
	e.Namespace = o.string()
	e.Name = o.string()
	e.Version = Version(o.uint())
	e.Incarnation = Incarnation(o.uint())
	e.Finished = o.bool()
	e.Reason = Reason(o.string())
	e.ContentType = ContentType(o.string())
	p := payload{compression: o.uint(), data: o.bytes()}
	e.Aux = nilIfEmpty(o.bytes())
	if n := o.array(); n > 0 {
		o.nested(n)
		e.Attributes = make(map[string]string, min(n/2, 16))
		for range n / 2 {
			k := o.string()
			e.Attributes[k] = o.string()
			if o.err != nil {
				break
			}
		}
	}
	if o.err == nil && o.n > 0 { // the earliest records end before it
		e.First = o.bool()
	}
	if err := o.end(); err != nil {
		return e, err
	}
	if stored != seq {
		return e, fmt.Errorf("%w: record of sequence %d under key %d", errShape, stored, seq)
	}
	status, err := p.open()
	if err != nil {
		return e, err
	}
	e.Status = nilIfEmpty(status)
	return e, nil
}

func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// head is the journal's state as of one commit, written by that commit.
type head struct {
	Sequence Sequence
	Epoch    Epoch
	Events   uint64   // records in the events bucket
	Bytes    uint64   // their values
	Horizon  Sequence // all up to here were considered for trimming
	Indexed  Sequence // the pods bucket covers all up to here
	Floor    Version  // highest version of a forgotten tombstone
	Suspects []suspect
	Sums     sums   // of the buckets pods, acks and objects
	Copy     uint64 // number of the copy that this file was when it was opened first
}

// suspect is an opened event before which events may have been lost. Each of
// them may have been of any pod, so each pod skips as many versions.
type suspect struct {
	Sequence Sequence
	Skip     Version
}

func (h head) encode(s *sealer) []byte {
	if h.Sums.known {
		s.begin(12)
	} else {
		s.begin(8)
	}
	s.uint(uint64(h.Sequence))
	s.uint(uint64(h.Epoch))
	s.uint(h.Events)
	s.uint(h.Bytes)
	s.uint(uint64(h.Horizon))
	s.uint(uint64(h.Indexed))
	s.uint(uint64(h.Floor))
	s.array(2 * len(h.Suspects))
	for _, q := range h.Suspects {
		s.uint(uint64(q.Sequence))
		s.uint(uint64(q.Skip))
	}
	if h.Sums.known {
		s.uint(h.Sums.pods)
		s.uint(h.Sums.acks)
		s.uint(h.Sums.objects)
		s.uint(h.Copy)
	}
	return s.finish(keyHead)
}

func decodeHead(value []byte) (head, error) {
	var h head
	o, err := unseal(keyHead, value)
	if err != nil {
		return h, err
	}
	h.Sequence = Sequence(o.uint())
	h.Epoch = Epoch(o.uint())
	h.Events = o.uint()
	h.Bytes = o.uint()
	h.Horizon = Sequence(o.uint())
	h.Indexed = Sequence(o.uint())
	h.Floor = Version(o.uint())
	if n := o.array(); n > 0 {
		o.nested(n)
		for range n / 2 {
			if o.err != nil {
				break
			}
			h.Suspects = append(h.Suspects, suspect{Sequence(o.uint()), Version(o.uint())})
		}
	}
	if o.err == nil && o.n >= 3 { // earlier releases end before them
		h.Sums = sums{pods: o.uint(), acks: o.uint(), objects: o.uint(), known: true}
	}
	if o.err == nil && o.n > 0 {
		h.Copy = o.uint()
	}
	return h, o.end()
}

// distrust notes that up to skip events may be missing before seq.
func (h *head) distrust(seq Sequence, skip Version) {
	h.Suspects = append(slices.Clip(h.Suspects), suspect{seq, skip})
	h.Floor += skip
}

func (h *head) skipped() (n Version) {
	for _, s := range h.Suspects {
		n += s.Skip
	}
	return n
}

// indexOf is the index record that an event makes.
func indexOf(e *Event) podIndex {
	return podIndex{Newest: e.Sequence, Version: e.Version, Incarnation: e.Incarnation, Finished: e.Finished,
		Removed: e.Kind == KindRemoved, Time: e.Time}
}

// podIndex is what the journal itself knows of a pod.
type podIndex struct {
	Newest      Sequence // newest event that is not a rejected one
	Version     Version
	Incarnation Incarnation
	Finished    bool
	Removed     bool // a tombstone
	Time        time.Time
}

func (p podIndex) encode(s *sealer, uid types.UID) []byte {
	s.begin(6)
	s.uint(uint64(p.Newest))
	s.uint(uint64(p.Version))
	s.uint(uint64(p.Incarnation))
	s.bool(p.Finished)
	s.bool(p.Removed)
	s.time(p.Time)
	return s.finish([]byte(uid))
}

func decodePodIndex(key, value []byte) (podIndex, error) {
	o, err := unseal(key, value)
	if err != nil {
		return podIndex{}, err
	}
	p := podIndex{
		Newest:      Sequence(o.uint()),
		Version:     Version(o.uint()),
		Incarnation: Incarnation(o.uint()),
		Finished:    o.bool(),
		Removed:     o.bool(),
		Time:        o.time(),
	}
	return p, o.end()
}

func (a Ack) encode(s *sealer) []byte {
	s.begin(3)
	s.string(string(a.LiveUID))
	s.uint(uint64(a.Version))
	s.time(a.Time)
	return s.finish([]byte(a.UID))
}

func decodeAck(key, value []byte) (Ack, error) {
	o, err := unseal(key, value)
	if err != nil {
		return Ack{}, err
	}
	a := Ack{UID: types.UID(key), LiveUID: types.UID(o.string()), Version: Version(o.uint()), Time: o.time()}
	return a, o.end()
}

// podObject is a remembered object, and the event that came with it: salvage
// finds older ones in free pages and must tell which is the newest.
type podObject struct {
	data     []byte
	sequence Sequence // 0 in files of earlier releases
}

func (p podObject) encode(s *sealer, uid types.UID) []byte {
	body := newPayload(p.data)
	s.begin(3)
	s.uint(body.compression)
	s.bytes(body.data)
	s.uint(uint64(p.sequence))
	return s.finish([]byte(uid))
}

func decodeObject(key, value []byte) (podObject, error) {
	o, err := unseal(key, value)
	if err != nil {
		return podObject{}, err
	}
	body, seq := payload{compression: o.uint(), data: o.bytes()}, uint64(0)
	if o.err == nil && o.n > 0 {
		seq = o.uint()
	}
	if err := o.end(); err != nil {
		return podObject{}, err
	}
	data, err := body.open()
	return podObject{data, Sequence(seq)}, err
}
