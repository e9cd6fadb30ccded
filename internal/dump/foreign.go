// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/statusstore/statusstore/journal"
)

// The buckets of a journal; see docs/format.md.
var ownBuckets = []string{"meta", "events", "pods", "acks", "objects", "openings"}

// oddity is a key or bucket that no journal writes there.
type oddity struct {
	text   string
	damage bool
}

// maxOddities bounds what is named one by one.
const maxOddities = 100

var errEnough = errors.New("more oddities than are named")

// foreign walks the keys of the file, not the values, and names those that are
// not a journal's. journal.Reader passes over them.
func foreign(path string, head journal.Sequence) (found []oddity, err error) {
	// The engine answers damaged pages with panics and memory faults.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("storage engine: %v", p)
		}
	}()
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	note := func(damage bool, format string, args ...any) error {
		if len(found) == maxOddities {
			return errEnough
		}
		found = append(found, oddity{text: fmt.Sprintf(format, args...), damage: damage})
		return nil
	}
	err = db.View(func(tx *bolt.Tx) error {
		err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if slices.Contains(ownBuckets, string(name)) {
				return nil
			}
			return note(false, "bucket %q is not a journal's; it is left alone", name)
		})
		if err != nil {
			return err
		}
		return tx.Bucket([]byte("events")).ForEach(func(k, v []byte) error {
			switch {
			case len(k) != 8:
				return note(false, "bucket events: key %q is not a journal's; it is left alone", k)
			case v == nil:
				return note(true, "bucket events: key %q holds a bucket, not an event", k)
			}
			seq := journal.Sequence(binary.BigEndian.Uint64(k))
			if len(v) == 0 {
				return note(true, "bucket events: sequence %d: empty value", seq)
			}
			if seq == 0 || seq > head {
				return note(true, "bucket events: sequence %d: the journal's head is %d", seq, head)
			}
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		found = append(found, oddity{text: errEnough.Error()})
		err = nil
	}
	return found, err
}
