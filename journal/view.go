// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// view reads a journal. Each read is a short transaction of its own, since one
// that stays open keeps all pages that were freed since from being reused.
type view struct {
	path    string
	about   about
	suspect bool
	// structure is what is wrong with the page tree, as far as it was looked at.
	structure []error

	// durable, if set, is the highest sequence that may be shown: a commit becomes
	// visible in the engine's map before its last sync.
	durable func() Sequence

	mu     sync.RWMutex // guards db: a write lock is held only to replace or close it
	db     *bolt.DB     // nil after Close, and while the engine can't be opened again
	closed bool
}

// Info says what a journal is.
type Info struct {
	Path    string    `json:"path"`
	Format  int       `json:"format"`
	Node    string    `json:"node,omitempty"`
	Created time.Time `json:"created"`
	// Suspect: one of the file's two meta pages is invalid, so the last commit
	// before this open may be missing.
	Suspect bool `json:"suspect,omitempty"`
}

// Info returns what was written at creation.
func (v *view) Info() Info {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return Info{Path: v.path, Format: Format, Node: v.about.Node, Created: v.about.Created, Suspect: v.suspect}
}

// read runs fn in a read transaction. Slices that fn gets are valid only inside.
func (v *view) read(fn func(tx *bolt.Tx) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case v.closed:
		return ErrClosed
	case v.db == nil:
		return fmt.Errorf("read journal %s: %w: it is being opened again after a failure", v.path, ErrDegraded)
	}
	return guard(v.path, func() error { return v.db.View(fn) })
}

func (v *view) corrupt(bucket []byte, seq Sequence, err error) error {
	kind := ErrCorrupt
	if errors.Is(err, ErrNewerFormat) {
		kind = ErrNewerFormat
	}
	return &CorruptError{Path: v.path, Bucket: string(bucket), Sequence: seq, Kind: kind, Err: err, Hint: hintVerify}
}

// identify checks that the file is a journal of a format this program reads.
func (v *view) identify(tx *bolt.Tx) (about, error) {
	meta := tx.Bucket(bucketMeta)
	if meta == nil || string(meta.Get(keyMagic)) != magic {
		return about{}, &CorruptError{Path: v.path, Kind: ErrNotJournal, Err: errors.New("it is a bbolt file of another program")}
	}
	format := meta.Get(keyFormat)
	if len(format) != 4 {
		return about{}, v.corrupt(bucketMeta, 0, errors.New("format number is damaged"))
	}
	if n := binary.BigEndian.Uint32(format); n > Format {
		return about{}, &CorruptError{Path: v.path, Kind: ErrNewerFormat, Hint: "use that release or a newer one; the file itself is fine",
			Err: fmt.Errorf("it has format %d, this program reads up to %d", n, Format)}
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return about{}, v.corrupt(name, 0, errors.New("bucket is missing"))
		}
	}
	a, err := decodeAbout(meta.Get(keyAbout))
	if err != nil {
		return about{}, v.corrupt(bucketMeta, 0, fmt.Errorf("about: %w", err))
	}
	return a, nil
}

func (v *view) head(tx *bolt.Tx) (head, error) {
	h, err := decodeHead(tx.Bucket(bucketMeta).Get(keyHead))
	if err != nil {
		return h, v.corrupt(bucketMeta, 0, fmt.Errorf("head: %w", err))
	}
	return h, nil
}

func (v *view) close() error {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	return v.release()
}

// release closes the engine, to open it again or for good.
func (v *view) release() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.db == nil {
		return nil
	}
	db := v.db
	v.db = nil
	return guard(v.path, db.Close)
}

func formatValue(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
