// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
)

// Stats are a journal's figures. They are kept, not counted.
type Stats struct {
	Head    Sequence `json:"headSequence"`
	Epoch   Epoch    `json:"epoch"`
	Horizon Sequence `json:"trimmedTo"` // retention looked at all up to here
	// First is where history begins: the first event of a pod. Opened events, which
	// retention keeps by themselves, may be older.
	First  Sequence `json:"firstSequence"`
	Events uint64   `json:"events"`
	// EventBytes is the size of all records, FileBytes that of the file, and
	// FreeBytes the part of it that the next commits will use again.
	EventBytes uint64 `json:"eventBytes"`
	FileBytes  int64  `json:"fileBytes"`
	FreeBytes  int64  `json:"freeBytes"`
	Tombstones int    `json:"tombstones"`
	Pods       int    `json:"pods"`
}

// Stats returns the figures as of the last commit.
func (j *Journal) Stats() (Stats, error) {
	s, err := j.fileStats()
	if err != nil {
		return s, err
	}
	j.mu.RLock()
	if j.db != nil {
		free := j.db.Stats()
		s.FreeBytes = int64(free.FreePageN+free.PendingPageN) * int64(j.db.Info().PageSize)
	}
	j.mu.RUnlock()
	j.stateMu.RLock()
	s.count(&j.state)
	j.stateMu.RUnlock()
	return s, nil
}

func (s *Stats) count(st *state) {
	for _, p := range st.pods {
		if p.Removed {
			s.Tombstones++
		} else {
			s.Pods++
		}
	}
}

func (v *view) fileStats() (Stats, error) {
	var s Stats
	err := v.read(func(tx *bolt.Tx) error {
		h, err := v.head(tx)
		if err != nil {
			return err
		}
		if v.durable != nil {
			h.Sequence = min(h.Sequence, v.durable())
		}
		s.Head, s.Epoch, s.Horizon, s.Events, s.EventBytes = h.Sequence, h.Epoch, h.Horizon, h.Events, h.Bytes
		s.First = firstEvent(tx)
		return nil
	})
	if err != nil {
		return s, err
	}
	info, err := os.Stat(v.path)
	if err != nil {
		return s, fmt.Errorf("journal: %w", err)
	}
	s.FileBytes = info.Size()
	return s, nil
}

// firstEvent returns the first event that is not an opened one; if there is none,
// the first.
func firstEvent(tx *bolt.Tx) (first Sequence) {
	c := tx.Bucket(bucketEvents).Cursor()
	for k, value := c.Seek(sequenceKey(1)); k != nil; k, value = c.Next() {
		seq, ok := parseSequenceKey(k)
		if !ok {
			continue
		}
		if e, err := decodeRecord(k, value); err != nil || e.Kind != KindOpened {
			return seq
		}
		if first == 0 {
			first = seq
		}
	}
	return first
}
