// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// plan is everything one commit writes, computed before the transaction. The
// journal's memory changes only after the transaction is durable, so a failed
// commit uses up no sequence and no version.
type plan struct {
	now     time.Time
	head    head
	batch   []*request
	events  []Event
	keys    [][]byte
	values  [][]byte
	bytes   int                    // of values and objects
	pods    map[types.UID]podIndex // as they will be
	added   map[Sequence]bool      // newest events among those of this commit
	objects map[types.UID]podObject
	removed []types.UID // their acks and objects go too

	trimmed    Sequence   // see state
	superseded []Sequence // newest events until now that trimming has passed
	ackPuts    []Ack
	ackDeletes []types.UID
	opened     *openedState
	opening    Sequence   // the opened event of this commit, if any
	openings   []Sequence // see state

	index     bool // write the index
	forgotten []types.UID
	deadDone  int
}

// commit writes a batch and answers its requests. Caller holds commitMu.
func (j *Journal) commit(batch []*request) {
	if err := j.ready(); err != nil {
		reject(batch, err)
		return
	}
	acks := acksPerCommit
	if !asksForAcks(batch) && !j.acks.ripe() {
		acks = 0
	}
	p := j.plan(batch, acks)
	if err := j.ensureRoom(max(p.bytes, j.room.wanted)); err != nil {
		p = j.ration(p, err)
	} else if j.room.rationed {
		j.room.rationed, j.room.wanted = false, 0
		j.fault.clear()
	}
	if p.writes() {
		if err := j.write(p); err != nil {
			j.acks.give(p.ackPuts, p.ackDeletes)
			reject(p.batch, err)
			return
		}
		j.apply(p)
	} else if err := j.probe(); err != nil {
		reject(p.batch, err)
		return
	}
	for _, r := range p.batch {
		r.finish(nil)
	}
}

// probe finds out whether a journal that could not write can again, when there is
// nothing to commit that would show it.
func (j *Journal) probe() error {
	if j.Degraded() == nil || j.room.rationed {
		return nil
	}
	if err := j.confirm(); err != nil {
		j.fault.set(err)
		return j.degraded(err)
	}
	j.fault.clear()
	return nil
}

// asksForAcks reports whether a Flush is among the requests.
func asksForAcks(batch []*request) bool {
	return slices.ContainsFunc(batch, func(r *request) bool { return len(r.events) == 0 })
}

// commitFinal notes an orderly end. Caller holds commitMu; nothing is queued
// behind it, since the queue is closed.
func (j *Journal) commitFinal() error {
	for batch := j.queue.gather(); len(batch) > 0; batch = j.queue.gather() {
		j.commit(batch)
	}
	if err := j.ready(); err != nil {
		return err
	}
	p := j.plan(nil, math.MaxInt)
	p.opened, p.index = &openedState{clean: true}, true
	p.bytes += indexBytes * len(j.dirty)
	if err := j.ensureRoom(p.bytes); err != nil {
		// An open without them takes longer and compares more, no more than that.
		j.acks.give(p.ackPuts, p.ackDeletes)
		p = j.plan(nil, 0)
		p.opened = &openedState{clean: true}
	}
	return j.write(p)
}

// acksPerCommit bounds the acks that ride along, so that an ordinary commit
// stays small; on a full disk a page of them goes out at a time.
const (
	acksPerCommit         = 1024
	acksPerCommitWhenFull = 8   // each may touch a page of its own
	ackBytes              = 128 // of key and value, and its share of the page
	indexBytes            = 160
)

// writes reports whether there is anything to commit.
func (p *plan) writes() bool { return len(p.events)+len(p.ackPuts)+len(p.ackDeletes) > 0 }

// plan assigns sequences and versions. Requests that are wrong by themselves
// are answered here and leave the batch.
func (j *Journal) plan(batch []*request, maxAcks int) *plan {
	p := &plan{now: time.Now().UTC(), head: j.state.head, trimmed: j.trimmed, openings: j.openings, pods: map[types.UID]podIndex{}, added: map[Sequence]bool{},
		objects: map[types.UID]podObject{}}
	p.ackPuts, p.ackDeletes = j.acks.take(maxAcks)
	p.bytes += ackBytes * (len(p.ackPuts) + len(p.ackDeletes))
	for _, r := range batch {
		if err := j.admit(p, r); err != nil {
			r.finish(err)
			continue
		}
		first := len(p.events)
		for i := range r.events {
			j.assign(p, &r.events[i], r.payloads[i])
		}
		r.result = p.events[first:len(p.events):len(p.events)]
		p.batch = append(p.batch, r)
	}
	// Without room the index waits: it only saves time at the next open.
	if p.head.Sequence-p.head.Indexed >= indexEvery && j.room.full == nil {
		p.index = true
		p.bytes += indexBytes * (len(j.dirty) + len(p.pods))
	}
	return p
}

func (j *Journal) lookup(p *plan, uid types.UID) (podIndex, bool) {
	if pod, ok := p.pods[uid]; ok {
		return pod, true
	}
	pod, ok := j.pods[uid]
	return pod, ok
}

// admit refuses marks for pods that are not there, before any event of the
// request is assigned.
func (j *Journal) admit(p *plan, r *request) error {
	there := map[types.UID]bool{} // by earlier events of the same request
	for i := range r.events {
		e := &r.events[i]
		if e.Kind == KindFinished || e.Kind == KindRemoved {
			live, changed := there[e.UID]
			if !changed {
				pod, ok := j.lookup(p, e.UID)
				live = ok && !pod.Removed
			}
			if !live {
				return fmt.Errorf("append %v event: pod %s: %w", e.Kind, e.UID, ErrNoPod)
			}
		}
		if len(r.events) > 1 && indexed(e.Kind) {
			there[e.UID] = e.Kind != KindRemoved
		}
	}
	return nil
}

// assign completes one event and encodes it.
func (j *Journal) assign(p *plan, in *Event, payload payload) {
	e := *in
	restored := e.Kind == KindOpened && e.Attributes[AttrRestored] != ""
	if restored {
		p.head.leap()
	}
	p.head.Sequence++
	e.Sequence, e.Time = p.head.Sequence, p.now
	if e.Kind == KindOpened {
		p.head.Epoch++
		p.opened, p.opening = &openedState{clean: false}, e.Sequence
		if e.Attributes[AttrSuspect] != "" {
			p.head.distrust(e.Sequence, 1)
		}
		if restored {
			p.head.distrust(e.Sequence, copyLeap)
			p.head.Copy = j.copyNumber
		}
	}
	e.Epoch = p.head.Epoch
	old, known := j.lookup(p, e.UID)
	if indexed(e.Kind) {
		e.First = !known || old.Removed || e.First && e.Kind == KindSet
		pod := p.head.next(old, known, &e)
		if _, again := p.pods[e.UID]; again {
			delete(p.added, old.Newest)
		} else if known && old.Newest <= p.trimmed {
			p.superseded = append(p.superseded, old.Newest)
		}
		p.pods[e.UID], p.added[e.Sequence] = pod, true
		e.Version, e.Incarnation, e.Finished = pod.Version, pod.Incarnation, pod.Finished
	} else {
		e.Version, e.Incarnation, e.Finished, e.First = old.Version, old.Incarnation, false, false
	}
	switch {
	case e.Kind == KindRemoved:
		p.removed = append(p.removed, e.UID)
		delete(p.objects, e.UID)
	case e.Object != nil:
		p.objects[e.UID] = podObject{e.Object, e.Sequence}
		p.bytes += len(e.Object)
	}
	key := sequenceKey(e.Sequence)
	value := encodeRecord(j.sealer, key, &e, payload)
	p.head.Events++
	p.head.Bytes += uint64(len(value))
	p.bytes += len(value)
	p.events, p.keys, p.values = append(p.events, e), append(p.keys, key), append(p.values, value)
}

func (p *plan) deleteEvent(events *bolt.Bucket, seq Sequence) error {
	key := sequenceKey(seq)
	v := events.Get(key)
	if v == nil {
		return nil
	}
	p.head.Events--
	p.head.Bytes -= uint64(len(v))
	return events.Delete(key)
}

// fillTx puts the plan into a transaction.
func (j *Journal) fillTx(tx *bolt.Tx, p *plan) error {
	events, meta := tx.Bucket(bucketEvents), tx.Bucket(bucketMeta)
	events.FillPercent = 1 // keys only ever grow
	if !p.head.Sums.known {
		var err error
		if p.head.Sums, err = sumAll(tx); err != nil {
			return err
		}
	}
	for i := range p.keys {
		if err := events.Put(p.keys[i], p.values[i]); err != nil {
			return err
		}
	}
	for _, seq := range p.superseded {
		if err := p.deleteEvent(events, seq); err != nil {
			return err
		}
	}
	if p.opening != 0 {
		if err := j.writeOpening(tx, p); err != nil {
			return err
		}
	}
	if err := j.trim(events, p); err != nil {
		return err
	}
	if err := j.writeObjects(tx, p); err != nil {
		return err
	}
	if err := j.writeAcks(tx, p); err != nil {
		return err
	}
	if p.index {
		if err := j.writeIndex(tx, p); err != nil {
			return err
		}
	}
	if p.opened != nil {
		if err := meta.Put(keyOpened, p.opened.encode(j.sealer)); err != nil {
			return err
		}
	}
	return meta.Put(keyHead, p.head.encode(j.sealer))
}

func (j *Journal) writeObjects(tx *bolt.Tx, p *plan) error {
	bucket := summedBucket{tx.Bucket(bucketObjects), &p.head.Sums.objects}
	for _, uid := range p.removed {
		if _, again := p.objects[uid]; again {
			continue
		}
		if err := bucket.delete([]byte(uid)); err != nil {
			return err
		}
	}
	for uid, object := range p.objects {
		if err := bucket.put([]byte(uid), object.encode(j.sealer, uid)); err != nil {
			return err
		}
	}
	return nil
}

// apply publishes a durable plan: first the journal's own index, then the
// projection through OnCommit, then the head. The callers return after all three.
func (j *Journal) apply(p *plan) {
	j.stateMu.Lock()
	for i := range p.events {
		j.observe(&p.events[i])
	}
	if p.index {
		clear(j.dirty)
		for _, uid := range p.forgotten {
			j.forget(uid)
		}
		j.dead = j.dead[p.deadDone:]
	}
	j.state.head, j.trimmed, j.openings = p.head, p.trimmed, p.openings
	j.stateMu.Unlock()
	for _, uid := range p.removed {
		j.acks.drop(uid) // also of a pod that came back at once: nobody knows its new status
	}
	if j.opts.OnCommit != nil && len(p.events) > 0 {
		j.opts.OnCommit(p.events)
	}
	j.tail.publish(p.head.Sequence)
}

// write commits the plan. A nil error means that it is durable, even if the
// engine reported a failure first.
func (j *Journal) write(p *plan) error {
	before := p.head
	err := guard(j.path, func() error {
		j.mu.RLock()
		defer j.mu.RUnlock()
		return j.db.Update(func(tx *bolt.Tx) error { return j.fillTx(tx, p) })
	})
	if err == nil {
		if !j.room.rationed {
			j.fault.clear()
		}
		return nil
	}
	return j.settle(p, before, err)
}

var errNotLanded = errors.New("commit did not land")
