// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"maps"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// ackTable holds the acks in memory, and which of them are not on disk yet.
// Losing those costs a comparison after a restart, never a wrong PATCH.
type ackTable struct {
	mu    sync.Mutex
	acks  map[types.UID]Ack
	dirty map[types.UID]struct{} // changed or deleted since they were last written
	since time.Time              // when dirty stopped being empty
}

// ackRide is how old the oldest unwritten ack must be to ride along with a commit
// of events. Each pod's ack may be on a page of its own, and a commit costs by the
// page: written with every commit they would be half of it (BenchmarkAppend).
const ackRide = 250 * time.Millisecond

// soil notes a change that is not on disk. Caller holds mu.
func (t *ackTable) soil(uid types.UID) {
	if len(t.dirty) == 0 {
		t.since = time.Now()
	}
	t.dirty[uid] = struct{}{}
}

// PutAck notes that the server holds a version. It is durable with one of the next
// commits, or with Flush. For one live UID an ack never goes down; an ack for a pod
// that is not in the journal, or above its version, is ignored.
func (j *Journal) PutAck(a Ack) {
	j.acks.mu.Lock()
	defer j.acks.mu.Unlock()
	// Inside of the ack lock: a removal changes the index first and drops the ack
	// after, so an ack that is let in here cannot outlive its pod.
	j.stateMu.RLock()
	pod, ok := j.pods[a.UID]
	j.stateMu.RUnlock()
	if !ok || pod.Removed || a.Version > pod.Version || a.Version == 0 {
		return
	}
	if old, ok := j.acks.acks[a.UID]; ok && old.LiveUID == a.LiveUID && old.Version >= a.Version {
		return
	}
	j.acks.acks[a.UID] = a
	j.acks.soil(a.UID)
}

// ForgetAck drops the ack of a pod: the server was seen to hold something else.
func (j *Journal) ForgetAck(uid types.UID) {
	j.acks.mu.Lock()
	defer j.acks.mu.Unlock()
	if _, ok := j.acks.acks[uid]; ok {
		delete(j.acks.acks, uid)
		j.acks.soil(uid)
	}
}

// Acks returns a copy of all acks, those that are not durable yet included.
func (j *Journal) Acks() (map[types.UID]Ack, error) {
	j.acks.mu.Lock()
	defer j.acks.mu.Unlock()
	return maps.Clone(j.acks.acks), nil
}

// Acks returns the acks in the file.
func (r *Reader) Acks() (map[types.UID]Ack, error) {
	var acks map[types.UID]Ack
	err := r.read(func(tx *bolt.Tx) (err error) {
		acks, err = r.view.loadAcks(tx)
		return err
	})
	return acks, err
}

func (v *view) loadAcks(tx *bolt.Tx) (map[types.UID]Ack, error) {
	acks, sum := map[types.UID]Ack{}, uint64(0)
	h, err := v.head(tx)
	if err != nil {
		return nil, err
	}
	err = tx.Bucket(bucketAcks).ForEach(func(k, value []byte) error {
		sum += sealSum(value)
		a, err := decodeAck(k, value)
		if err != nil {
			return v.corruptKey(bucketAcks, k, err)
		}
		acks[a.UID] = a
		return nil
	})
	if err == nil {
		err = v.checkSum(bucketAcks, h.Sums.known, h.Sums.acks, sum)
	}
	return acks, err
}

// loadAcks also clamps: an ack above its pod's version, or for no pod at all,
// can only come from a file that was put back or damaged.
func (j *Journal) loadAcks(tx *bolt.Tx) error {
	acks, err := j.view.loadAcks(tx)
	if errors.Is(err, errSum) {
		// Acks are hints: one that is missing or old costs a comparison, so this
		// is no reason to stand still.
		j.log.Warn("journal's acks are not all as the newest commit left them", "path", j.path)
		j.state.head.Sums.acks, err = sumOf(tx.Bucket(bucketAcks))
	}
	if err != nil {
		return err
	}
	j.acks.acks, j.acks.dirty = acks, map[types.UID]struct{}{}
	for uid, a := range acks {
		pod, ok := j.pods[uid]
		if !ok || pod.Removed || a.Version > pod.Version {
			delete(acks, uid)
			j.acks.soil(uid)
		}
	}
	return nil
}

// take returns up to n of those that are not on disk yet and counts them as
// written; give puts them back when the commit failed.
func (t *ackTable) take(n int) (puts []Ack, deletes []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range t.dirty {
		if len(puts)+len(deletes) == n {
			break
		}
		if a, ok := t.acks[uid]; ok {
			puts = append(puts, a)
		} else {
			deletes = append(deletes, uid)
		}
		delete(t.dirty, uid)
	}
	return puts, deletes
}

func (t *ackTable) give(puts []Ack, deletes []types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range puts {
		t.soil(a.UID)
	}
	for _, uid := range deletes {
		t.soil(uid)
	}
}

func (t *ackTable) anyDirty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.dirty) > 0
}

// ripe reports whether acks are old enough to ride along.
func (t *ackTable) ripe() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.dirty) > 0 && time.Since(t.since) >= ackRide
}

// drop removes the ack of a removed pod after the commit that deleted it.
func (t *ackTable) drop(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.acks, uid)
	delete(t.dirty, uid)
}

func (j *Journal) writeAcks(tx *bolt.Tx, p *plan) error {
	bucket := summedBucket{tx.Bucket(bucketAcks), &p.head.Sums.acks}
	for _, a := range p.ackPuts {
		if err := bucket.put([]byte(a.UID), a.encode(j.sealer)); err != nil {
			return err
		}
	}
	for _, uids := range [][]types.UID{p.ackDeletes, p.removed} {
		for _, uid := range uids {
			if err := bucket.delete([]byte(uid)); err != nil {
				return err
			}
		}
	}
	return nil
}
