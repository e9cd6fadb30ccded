// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A reader shows what is provably good in a file that a writer refuses: the
// damage is named by Info, by each read that it touches, and by Verify.

// Reader is a journal open for reading only. It never creates or changes a file.
type Reader struct {
	view
	lastHead head
}

// ReadOptions tune OpenReadOnly; the zero value is the recommended setup.
type ReadOptions struct {
	// LockTimeout bounds the wait for a process that has the file open for
	// writing. Default 1 s.
	LockTimeout time.Duration
}

// OpenReadOnly opens the journal at path for reading. Several readers may have
// it open at once; a writer shuts them out, and they it (ErrLocked).
//
// A damaged head or about record does not keep a reader out: see Info.Damage.
// What cannot be told without a head is left open rather than guessed: where
// retention ended, and so whether events are missing.
func OpenReadOnly(path string, o ReadOptions) (*Reader, error) {
	if o.LockTimeout <= 0 {
		o.LockTimeout = time.Second
	}
	unlock, err := probeLock(path, o.LockTimeout, lockShared)
	if err != nil {
		return nil, err
	}
	pre, err := preflight(path, leaves)
	unlock()
	if err == nil {
		err = pre.safeForReading(path)
	}
	if err != nil {
		return nil, err
	}
	db, err := openBolt(path, &bolt.Options{ReadOnly: true, Timeout: o.LockTimeout})
	if err != nil {
		return nil, err
	}
	r := &Reader{view: view{path: path, suspect: pre.suspect, copyNumber: pre.copied, structure: pre.structure, freeBytes: pre.freeBytes, db: db}}
	if err := r.read(r.acquaint); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// acquaint reads what identifies the journal, and notes what of it is damaged.
func (r *Reader) acquaint(tx *bolt.Tx) error {
	if err := r.identify(tx); err != nil {
		return err
	}
	var err error
	if r.about, err = r.readAbout(tx); err != nil {
		r.defects = append(r.defects, err)
	}
	if r.lastHead, err = r.head(tx); err != nil {
		r.defects = append(r.defects, err)
		r.lastHead = deriveHead(tx)
		r.derived = &r.lastHead
	}
	if _, err := r.readOpened(tx); err != nil {
		r.defects = append(r.defects, err)
	}
	return nil
}

// deriveHead takes the newest good event for the head. All is taken as looked at
// by retention, since gaps cannot be told from what it trimmed.
func deriveHead(tx *bolt.Tx) (h head) {
	c := tx.Bucket(bucketEvents).Cursor()
	for k, value := c.Last(); k != nil; k, value = c.Prev() {
		if e, err := decodeRecord(k, value); err == nil {
			return head{Sequence: e.Sequence, Epoch: e.Epoch, Horizon: e.Sequence}
		}
	}
	return h
}

// Head returns the highest committed sequence.
func (r *Reader) Head() Sequence { return r.lastHead.Sequence }

// Close releases the file. It may be called more than once.
func (r *Reader) Close() error { return r.close() }

// Newest yields each pod's newest event that is not a rejected one, tombstones
// included, in order of sequence. It reads O(pods) records. In a damaged file
// what is wrong comes first, then the pods whose newest event is certain.
func (r *Reader) Newest() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s, damage := r.certain()
		for _, err := range damage {
			if !yield(Event{}, err) {
				return
			}
		}
		for e, err := range r.newestOf(slices.Sorted(maps.Keys(s.newest)), func(Sequence) bool { return true }) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// certain returns the state as far as it is proven, and what is damaged. Without
// a sound index it folds all events: each pod's newest is among them. Whatever is
// damaged there may have been the newest event of any pod, so only pods that
// changed after it are certain.
func (r *Reader) certain() (s *state, damage []error) {
	damage = slices.Clone(r.defects)
	s = &state{}
	err := r.read(func(tx *bolt.Tx) error { return r.loadState(tx, s) })
	if err == nil && (r.derived == nil || len(r.structure) == 0) {
		return s, damage
	}
	if err != nil {
		damage = append(damage, err)
	}
	s.init()
	if err != nil && !errors.Is(err, ErrCorrupt) { // closed, or newer
		return s, damage
	}
	r.scan(1, 0, func(raw rawRecord) bool {
		e, err := Event{}, raw.err
		if err == nil {
			e, err = decodeRecord(raw.key, raw.value)
		}
		if err != nil {
			s.init()
			return true
		}
		s.observe(&e)
		return true
	})
	if r.derived != nil && len(r.structure) > 0 {
		// Events may be missing without a gap that shows.
		s.init()
		return s, append(damage, structureError(r.path, r.structure[0]))
	}
	return s, damage
}

// Stats returns the figures of the file, as far as they can be told; the error
// says what can't.
func (r *Reader) Stats() (Stats, error) {
	s, err := r.fileStats()
	if err != nil {
		return s, err
	}
	st, damage := r.certain()
	s.count(st)
	s.FreeBytes = r.freeBytes
	return s, errors.Join(damage...)
}

func (v *view) readAbout(tx *bolt.Tx) (about, error) {
	a, err := decodeAbout(tx.Bucket(bucketMeta).Get(keyAbout))
	if err != nil {
		return about{}, v.corruptMeta(keyAbout, err)
	}
	return a, nil
}

func (v *view) readOpened(tx *bolt.Tx) (openedState, error) {
	o, err := decodeOpened(tx.Bucket(bucketMeta).Get(keyOpened))
	if err != nil {
		return o, v.corruptMeta(keyOpened, err)
	}
	return o, nil
}

func (v *view) corruptMeta(key []byte, err error) error {
	return &CorruptError{Path: v.path, Bucket: string(bucketMeta), Key: string(key), Kind: ErrCorrupt, Err: fmt.Errorf("%s: %w", key, err), Hint: hintSalvage}
}
