// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// indexEvery is how many events are committed between two writes of the pods
// bucket; opening reads at most about that many events. Writing it with every
// commit would cost a page per pod touched.
const indexEvery = 1024

// state is the journal's own memory: O(pods), never O(history). Only a commit
// changes it, under stateMu; the committer itself reads it without.
type state struct {
	wasClean bool

	stateMu sync.RWMutex
	head    head
	pods    map[types.UID]podIndex
	newest  map[Sequence]types.UID // inverse of pods: events that trimming spares
	dirty   map[types.UID]struct{} // not yet written to the pods bucket
	dead    []tombstone            // oldest first; may hold ones that came back
	// trimmed is how far trimming has looked in this run. It begins anew at each
	// open, so that it also meets what lies below the horizon of a salvaged file.
	trimmed  Sequence
	openings []Sequence // in order; see openings.go
}

type tombstone struct {
	uid types.UID
	seq Sequence
	at  time.Time
}

// next returns the index record of uid after an event of this kind.
func (h *head) next(old podIndex, known bool, e *Event) podIndex {
	p := old
	if !known {
		p = podIndex{Version: h.Floor, Incarnation: 0, Removed: true}
	}
	if p.Removed || e.First {
		p.Incarnation++
		p.Finished = false
	}
	p.Version++
	if known {
		// A version that a lost commit may have given away is not given again.
		for _, s := range h.Suspects {
			if s.Sequence > old.Newest {
				p.Version += s.Skip
			}
		}
	}
	p.Finished = p.Finished || e.Finished || e.Kind == KindFinished
	p.Removed = e.Kind == KindRemoved
	p.Newest = e.Sequence
	p.Time = e.Time
	return p
}

// observe folds a committed event into the index.
func (s *state) observe(e *Event) {
	if !indexed(e.Kind) {
		return
	}
	s.put(e.UID, indexOf(e))
}

// indexed reports whether events of this kind make a pod's state.
func indexed(k Kind) bool { return k == KindSet || k == KindFinished || k == KindRemoved }

func (s *state) put(uid types.UID, p podIndex) {
	if old, ok := s.pods[uid]; ok {
		delete(s.newest, old.Newest)
	}
	s.pods[uid] = p
	s.newest[p.Newest] = uid
	s.dirty[uid] = struct{}{}
	if p.Removed {
		s.dead = append(s.dead, tombstone{uid, p.Newest, p.Time})
	}
}

func (s *state) forget(uid types.UID) {
	delete(s.newest, s.pods[uid].Newest)
	delete(s.pods, uid)
	delete(s.dirty, uid)
}

// current reports whether the tombstone still stands: the pod has not come back.
func (s *state) current(t tombstone) bool {
	p, ok := s.pods[t.uid]
	return ok && p.Removed && p.Newest == t.seq
}

func (s *state) init() {
	s.pods, s.newest, s.dirty = map[types.UID]podIndex{}, map[Sequence]types.UID{}, map[types.UID]struct{}{}
}

// loadState reads the index and folds in the events that came after it.
func (v *view) loadState(tx *bolt.Tx, s *state) error {
	s.init()
	h, err := v.head(tx)
	if err != nil {
		return err
	}
	s.head = h
	opened, err := v.readOpened(tx)
	if err != nil {
		return err
	}
	s.wasClean = opened.clean
	sum := uint64(0)
	err = tx.Bucket(bucketPods).ForEach(func(k, value []byte) error {
		sum += sealSum(value)
		p, err := decodePodIndex(k, value)
		if err != nil {
			return v.corruptKey(bucketPods, k, err)
		}
		s.pods[types.UID(k)] = p
		s.newest[p.Newest] = types.UID(k)
		return nil
	})
	if err == nil {
		err = v.checkSum(bucketPods, h.Sums.known, h.Sums.pods, sum)
	}
	if err != nil {
		return err
	}
	for _, uid := range slices.SortedFunc(maps.Keys(s.pods), func(a, b types.UID) int {
		return cmp.Compare(s.pods[a].Newest, s.pods[b].Newest)
	}) {
		if p := s.pods[uid]; p.Removed {
			s.dead = append(s.dead, tombstone{uid, p.Newest, p.Time})
		}
	}
	if s.openings, err = v.loadOpenings(tx); err != nil {
		return err
	}
	return v.loadTail(tx, s)
}

// loadTail folds in the events above the index. Above the horizon each
// sequence up to the head must be there.
func (v *view) loadTail(tx *bolt.Tx, s *state) error {
	want := max(s.head.Indexed, s.head.Horizon) + 1
	c := tx.Bucket(bucketEvents).Cursor()
	for k, value := c.Seek(sequenceKey(s.head.Indexed + 1)); k != nil; k, value = c.Next() {
		seq, ok := parseSequenceKey(k)
		if !ok {
			continue // not ours: left alone, named by verify
		}
		if seq > s.head.Sequence {
			if _, err := decodeRecord(k, value); err != nil {
				continue // no event: see aboveHead
			}
			return v.corrupt(bucketEvents, seq, fmt.Errorf("event above the head %d", s.head.Sequence))
		}
		if seq > want {
			return v.corrupt(bucketEvents, want, errors.New("event is missing"))
		}
		e, err := decodeRecord(k, value)
		if err != nil {
			return v.corrupt(bucketEvents, seq, err)
		}
		s.observe(&e)
		if seq == want {
			want++
		}
	}
	if want <= s.head.Sequence {
		return v.corrupt(bucketEvents, want, errors.New("event is missing"))
	}
	return nil
}

// writeIndex brings the pods bucket up to date and forgets old tombstones,
// raising the floor to their versions in the same commit.
func (j *Journal) writeIndex(tx *bolt.Tx, p *plan) error {
	bucket, events := summedBucket{tx.Bucket(bucketPods), &p.head.Sums.pods}, tx.Bucket(bucketEvents)
	write := func(uid types.UID, pod podIndex) error { return bucket.put([]byte(uid), pod.encode(j.sealer, uid)) }
	for uid := range j.dirty {
		if _, changed := p.pods[uid]; !changed {
			if err := write(uid, j.pods[uid]); err != nil {
				return err
			}
		}
	}
	for uid, pod := range p.pods {
		if err := write(uid, pod); err != nil {
			return err
		}
	}
	keep := len(j.dead)
	for _, t := range j.dead {
		pod, changed := p.pods[t.uid]
		if !changed && j.current(t) {
			if keep <= maxTombstones && p.now.Sub(t.at) < j.opts.Retention.TombstoneAge {
				break // the rest is younger
			}
			pod = j.pods[t.uid]
			p.head.Floor = max(p.head.Floor, pod.Version)
			p.forgotten = append(p.forgotten, t.uid)
			if err := bucket.delete([]byte(t.uid)); err != nil {
				return err
			}
			if t.seq <= p.trimmed {
				if err := p.deleteEvent(events, t.seq); err != nil {
					return err
				}
			}
		}
		keep--
		p.deadDone++
	}
	p.head.Indexed = p.head.Sequence
	return nil
}
