// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
	// copyNumber is the file's own: see copies.go.
	copyNumber uint64
	// freeBytes is how much of the file was free when it was opened.
	freeBytes int64
	// structure is what is wrong with the page tree, as far as it was looked at.
	structure []error

	// Of a reader: what is damaged beside that, and the head in place of one that is.
	defects []error
	derived *head

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
	// Damage is what a reader found wrong when it opened the file, pages and the
	// records in bucket meta. Only Verify looks at everything.
	Damage []string `json:"damage,omitempty"`
}

// Info returns what was written at creation.
func (v *view) Info() Info {
	v.mu.RLock()
	defer v.mu.RUnlock()
	i := Info{Path: v.path, Format: Format, Node: v.about.Node, Created: v.about.Created, Suspect: v.suspect}
	for _, err := range slices.Concat(v.structure, v.defects) {
		i.Damage = append(i.Damage, cause(err).Error())
	}
	return i
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

func (v *view) corruptKey(bucket, key []byte, err error) error {
	return &CorruptError{Path: v.path, Bucket: string(bucket), Key: string(key), Kind: ErrCorrupt, Err: fmt.Errorf("key %q: %w", key, err), Hint: hintVerify}
}

// identify checks that the file is a journal of a format this program reads.
func (v *view) identify(tx *bolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil || string(meta.Get(keyMagic)) != magic {
		return &CorruptError{Path: v.path, Kind: ErrNotJournal, Err: errors.New("it is a bbolt file of another program")}
	}
	format := meta.Get(keyFormat)
	if len(format) != 4 {
		return v.corrupt(bucketMeta, 0, errors.New("format number is damaged"))
	}
	switch n := binary.BigEndian.Uint32(format); {
	case n == 0 || n > maxFormat:
		return v.corrupt(bucketMeta, 0, fmt.Errorf("format number %d is damaged", n))
	case n > Format:
		return &CorruptError{Path: v.path, Kind: ErrNewerFormat, Hint: "use that release or a newer one; the file itself is fine",
			Err: fmt.Errorf("it has format %d, this program reads up to %d", n, Format)}
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return v.corrupt(name, 0, errors.New("bucket is missing"))
		}
	}
	return nil
}

func (v *view) head(tx *bolt.Tx) (head, error) {
	if v.derived != nil {
		return *v.derived, nil
	}
	h, err := decodeHead(tx.Bucket(bucketMeta).Get(keyHead))
	if err != nil {
		return h, v.corruptMeta(keyHead, err)
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
