// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// Reads go in pages, each a transaction of its own.
const (
	pageEvents = 256
	pageBytes  = 1 << 20
)

// Events yields the events from one sequence to another, both included, in
// order; to 0 means up to the head as it is when reading gets there. Gaps below
// Stats.Horizon are what retention trimmed and are passed over. For a damaged
// or missing record the error is a *CorruptError and the event has only its
// sequence; reading goes on behind it. What a reader found wrong with the file as
// a whole comes first, with sequence 0.
func (v *view) Events(from, to Sequence) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, err := range v.defects {
			if !yield(Event{}, err) {
				return
			}
		}
		v.scan(from, to, func(r rawRecord) bool {
			if r.err != nil {
				return yield(Event{Sequence: r.seq}, r.err)
			}
			e, err := decodeRecord(r.key, r.value)
			if err != nil {
				return yield(Event{Sequence: r.seq}, v.corrupt(bucketEvents, r.seq, err))
			}
			return yield(e, nil)
		})
	}
}

var errOrder = errors.New("keys are out of order")

// maxValueBytes is more than any value has: status, aux and names.
const maxValueBytes = 3 * MaxStatusBytes

// cloneValue copies a value; the size of one on a damaged page may be anything,
// and becomes nothing, which is no record.
func cloneValue(value []byte) []byte {
	if len(value) > maxValueBytes {
		value = value[:0]
	}
	return slices.Clone(value)
}

// rawRecord is one key of the events bucket, copied, or what is wrong there.
type rawRecord struct {
	seq        Sequence
	key, value []byte
	err        error
}

// scan walks the events bucket and reports records, gaps and unreadable pages.
func (v *view) scan(from, to Sequence, visit func(rawRecord) bool) {
	next := max(from, 1)
	for to == 0 || next <= to {
		page, top, horizon, err := v.page(next, to)
		for _, r := range page {
			if lo := max(next, horizon+1); r.seq > lo && !visit(v.gap(lo, r.seq-1)) {
				return
			}
			next = r.seq + 1
			if !visit(r) {
				return
			}
		}
		limit := top
		if to != 0 {
			limit = min(to, top)
		}
		switch {
		case err != nil && top == 0: // not even the head can be read
			visit(rawRecord{seq: next, err: err})
			return
		case err != nil:
			again := v.resume(next, limit)
			lost := rawRecord{seq: next, err: v.corrupt(bucketEvents, next,
				fmt.Errorf("events %d to %d are unreadable: %w", next, again-1, cause(err)))}
			if !visit(lost) {
				return
			}
			next = again
		case len(page) == 0:
			if lo := max(next, horizon+1); lo <= limit {
				visit(v.gap(lo, limit))
			}
			return
		}
		if next > limit {
			return
		}
	}
}

func (v *view) gap(from, to Sequence) rawRecord {
	err := fmt.Errorf("event %d is missing", from)
	if to > from {
		err = fmt.Errorf("events %d to %d are missing", from, to)
	}
	return rawRecord{seq: from, err: v.corrupt(bucketEvents, from, err)}
}

// page copies up to a page of records. On an error it returns those before it.
func (v *view) page(from, to Sequence) (page []rawRecord, top, horizon Sequence, err error) {
	err = v.read(func(tx *bolt.Tx) error {
		h, err := v.head(tx)
		if err != nil {
			return err
		}
		top, horizon = h.Sequence, h.Horizon
		if v.durable != nil {
			top = min(top, v.durable())
		}
		bytes := 0
		c := tx.Bucket(bucketEvents).Cursor()
		for k, value := c.Seek(sequenceKey(from)); k != nil && len(page) < pageEvents && bytes < pageBytes; k, value = c.Next() {
			seq, ok := parseSequenceKey(k)
			if !ok {
				continue
			}
			if to != 0 && seq > to || seq > top {
				break
			}
			// On a damaged page keys may be out of order. Going back would never end;
			// what is passed over shows as a gap.
			if seq < from || len(page) > 0 && seq <= page[len(page)-1].seq {
				continue
			}
			page = append(page, rawRecord{seq: seq, key: slices.Clone(k), value: cloneValue(value)})
			bytes += len(value)
		}
		return nil
	})
	return page, top, horizon, err
}

// cause is what a CorruptError wraps, without the place that it repeats.
func cause(err error) error {
	if e, ok := errors.AsType[*CorruptError](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// resumeStep is how far resume looks one by one: a leaf page holds fewer events.
const resumeStep = 1024

// resume finds the lowest sequence above from where reading works again.
// Behind a single page it looks one by one, since good pages may lie between
// bad ones; a larger hole is jumped over by steps that double.
func (v *view) resume(from, limit Sequence) Sequence {
	readable := func(s Sequence) bool {
		return v.read(func(tx *bolt.Tx) error {
			tx.Bucket(bucketEvents).Cursor().Seek(sequenceKey(s))
			return nil
		}) == nil
	}
	for s := from + 1; s <= min(limit, from+resumeStep); s++ {
		if readable(s) {
			return s
		}
	}
	bad, good := from+resumeStep, limit+1
	for step := Sequence(1); bad+step <= limit; step *= 2 {
		if readable(bad + step) {
			good = bad + step
			break
		}
		bad += step
	}
	for good > bad+1 {
		if mid := bad + (good-bad)/2; readable(mid) {
			good = mid
		} else {
			bad = mid
		}
	}
	return good
}

// newestOf yields the records of the given sequences, each in order of the list.
// One that is missing because it is not current any more is passed over.
func (v *view) newestOf(sequences []Sequence, current func(Sequence) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for chunk := range slices.Chunk(sequences, pageEvents) {
			records := make([]rawRecord, 0, len(chunk))
			err := v.read(func(tx *bolt.Tx) error {
				events := tx.Bucket(bucketEvents)
				for _, seq := range chunk {
					key := sequenceKey(seq)
					records = append(records, rawRecord{seq: seq, key: key, value: cloneValue(events.Get(key))})
				}
				return nil
			})
			for _, r := range records {
				e, err := decodeRecord(r.key, r.value)
				if err != nil {
					if r.value == nil {
						if !current(r.seq) {
							continue
						}
						err = errors.New("event is missing")
					}
					e, err = Event{Sequence: r.seq}, v.corrupt(bucketEvents, r.seq, err)
				}
				if !yield(e, err) {
					return
				}
			}
			if err != nil && !yield(Event{}, err) {
				return
			}
		}
	}
}

// Newest yields each pod's newest event that is not a rejected one, tombstones
// included, in order of sequence. It reads O(pods) records. A pod that changes
// meanwhile may be left out: its newer events are OnCommit's.
func (j *Journal) Newest() iter.Seq2[Event, error] {
	j.stateMu.RLock()
	sequences := slices.Sorted(maps.Keys(j.newest))
	j.stateMu.RUnlock()
	return j.newestOf(sequences, func(seq Sequence) bool {
		j.stateMu.RLock()
		defer j.stateMu.RUnlock()
		_, ok := j.newest[seq]
		return ok
	})
}

// Objects yields the remembered pod object of each UID that has one.
func (v *view) Objects() iter.Seq2[types.UID, ObjectResult] {
	return func(yield func(types.UID, ObjectResult) bool) {
		after, sum := []byte{}, uint64(0)
		for {
			var keys, values [][]byte
			err := v.read(func(tx *bolt.Tx) error {
				size := 0
				c := tx.Bucket(bucketObjects).Cursor()
				for k, value := c.Seek(after); k != nil && len(keys) < pageEvents && size < pageBytes; k, value = c.Next() {
					if len(k) > bolt.MaxKeySize || bytes.Compare(k, after) < 0 {
						return v.corrupt(bucketObjects, 0, errOrder)
					}
					after = append(slices.Clone(k), 0) // the next possible key
					keys, values = append(keys, slices.Clone(k)), append(values, cloneValue(value))
					size += len(value)
					sum += sealSum(value)
				}
				if len(keys) > 0 || v.durable != nil { // a writer looked at open
					return nil
				}
				h, err := v.head(tx)
				if err != nil {
					return err
				}
				return v.checkSum(bucketObjects, h.Sums.known, h.Sums.objects, sum)
			})
			if err != nil {
				yield("", ObjectResult{Err: err})
				return
			}
			for i, k := range keys {
				object, err := decodeObject(k, values[i])
				if err != nil {
					err = v.corruptKey(bucketObjects, k, err)
				}
				if !yield(types.UID(k), ObjectResult{Object: object.data, Err: err}) {
					return
				}
			}
			if len(keys) == 0 {
				return
			}
		}
	}
}

// ObjectResult is a remembered pod object, in the encoding that Append was given.
type ObjectResult struct {
	Object []byte
	Err    error
}
