// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// Opened events are kept by a rule of their own, or the restarts of a crash loop
// would push out the history that tells why: the newest maxOpenings stay, and of
// the older ones those of epochs that still have events. The bucket openings lists
// them, since finding them among the events would cost reading all. It is optional:
// an earlier release neither reads nor writes it, and what is not listed is history
// like any other event.
const maxOpenings = 100

func encodeOpening(s *sealer, key []byte, e Epoch) []byte {
	s.begin(1)
	s.uint(uint64(e))
	return s.finish(key)
}

func decodeOpening(key, value []byte) (Epoch, error) {
	o, err := unseal(key, value)
	if err != nil {
		return 0, err
	}
	e := Epoch(o.uint())
	return e, o.end()
}

// loadOpenings returns the listed sequences whose events are there.
func (v *view) loadOpenings(tx *bolt.Tx) (list []Sequence, err error) {
	b, events := tx.Bucket(bucketOpenings), tx.Bucket(bucketEvents)
	if b == nil {
		if k, _ := tx.Cursor().Seek(bucketOpenings); string(k) == string(bucketOpenings) {
			return nil, v.corrupt(bucketOpenings, 0, errors.New("it is not a bucket"))
		}
		return nil, nil
	}
	err = b.ForEach(func(k, value []byte) error {
		seq, ok := parseSequenceKey(k)
		if !ok {
			return nil
		}
		if _, err := decodeOpening(k, value); err != nil {
			return v.corruptKey(bucketOpenings, k, err)
		}
		if events.Get(k) != nil { // an earlier release may have trimmed it
			list = append(list, seq)
		}
		return nil
	})
	return list, err
}

// writeOpening lists the opened event of this commit and drops old ones.
func (j *Journal) writeOpening(tx *bolt.Tx, p *plan) error {
	events := tx.Bucket(bucketEvents)
	b, err := tx.CreateBucketIfNotExists(bucketOpenings)
	if err != nil {
		return err
	}
	key := sequenceKey(p.opening)
	if err := b.Put(key, encodeOpening(j.sealer, key, p.head.Epoch)); err != nil {
		return err
	}
	list := append(slices.Clone(j.openings), p.opening)
	p.openings = nil
	for i, seq := range list {
		if len(list)-i <= maxOpenings || hasEvents(events, seq, list[i+1]) {
			p.openings = append(p.openings, seq)
			continue
		}
		if err := p.deleteEvent(events, seq); err != nil {
			return err
		}
		if err := b.Delete(sequenceKey(seq)); err != nil {
			return err
		}
		p.head.Horizon = max(p.head.Horizon, seq)
	}
	return nil
}

// hasEvents reports whether there is an event between two.
func hasEvents(events *bolt.Bucket, from, to Sequence) bool {
	c := events.Cursor()
	for k, _ := c.Seek(sequenceKey(from + 1)); k != nil; k, _ = c.Next() {
		if seq, ok := parseSequenceKey(k); ok {
			return seq < to
		}
	}
	return false
}

// isOpening reports whether trimming leaves the event to writeOpening.
func (p *plan) isOpening(seq Sequence) bool {
	_, found := slices.BinarySearch(p.openings, seq)
	return found
}

// checkOpenings: an entry without an event is what an earlier release leaves.
func (c *verifier) checkOpenings() error {
	return c.read(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketOpenings)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, value []byte) error {
			seq, ok := parseSequenceKey(k)
			epoch, err := decodeOpening(k, value)
			bad := Problem{Bucket: string(bucketOpenings), Sequence: seq}
			record := tx.Bucket(bucketEvents).Get(k)
			e, eventErr := decodeRecord(k, record)
			switch {
			case !ok:
				c.note("key %q in bucket openings is not one of a journal; it is left alone", k)
				return nil
			case err != nil:
				bad.Message = err.Error()
			case record == nil || eventErr != nil: // checkEvents names it
				return nil
			case e.Kind != KindOpened || e.Epoch != epoch:
				bad.Message = fmt.Sprintf("it is a %v event of epoch %d, not the opened event of epoch %d", e.Kind, e.Epoch, epoch)
			default:
				return nil
			}
			c.problem(bad)
			return nil
		})
	})
}
