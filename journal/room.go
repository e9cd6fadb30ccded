// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	bolt "go.etcd.io/bbolt"
)

// The file is grown here, before a commit needs it, and with real blocks:
// bbolt's own growth leaves a hole, and a full disk would then fail in the
// middle of a commit. What is kept ahead is the reserve: when the disk is full,
// ordinary writes are refused, and finished marks, removals, acks and what the
// caller calls essential still fit.
//
// File systems that copy on write, or cannot allocate ahead, give no such
// promise; there a full disk fails the commit, which is settled like any other.

const (
	// growBytes is how much the file grows by.
	growBytes = 1 << 20
	// reserveBytes is what ordinary writes leave untouched. A commit of one event
	// takes about 25 KiB at a time and gives most of it back.
	reserveBytes = 256 << 10
	// commitBytes covers the pages that a commit copies beside its events.
	commitBytes = 64 << 10
)

// room is what the committer knows about space in the file.
type room struct {
	full     error // why the file could not grow; nil when it could
	rationed bool  // ordinary writes were refused for it
	noAhead  bool  // the file system cannot allocate ahead
	left     int64 // bytes that commits can still take, as last seen
	// wanted is the size of what was refused, at most maxWanted. There is room again
	// when there is room for that: acks alone almost always find some.
	wanted int
}

// maxWanted keeps one huge status from shutting out the small ones.
const maxWanted = 64 << 10

// scarce reports whether a good part of the reserve is used up.
func (r *room) scarce() bool { return r.full != nil && r.left < reserveBytes*3/4 }

// ensureRoom grows the file if a commit of that many bytes would touch the
// reserve. Caller holds commitMu.
func (j *Journal) ensureRoom(bytes int) error {
	if j.room.noAhead {
		return nil
	}
	var used, free int64
	err := j.read(func(tx *bolt.Tx) error {
		used = tx.Size()
		s := j.db.Stats()
		free = int64(s.FreePageN+s.PendingPageN) * int64(j.db.Info().PageSize)
		return nil
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(j.path)
	if err != nil {
		return err
	}
	if info.Size() > used && hasHoles(info) {
		// The engine grew the file by itself, in a commit larger than foreseen.
		if j.room.full = j.allocate(used, info.Size()-used); j.room.full != nil {
			return j.room.full
		}
	}
	j.room.left = info.Size() - used + free
	missing := reserveBytes + commitBytes + 2*int64(bytes) - j.room.left
	if missing <= 0 {
		j.room.full = nil
		return nil
	}
	j.room.full = j.grow(info.Size(), (missing+growBytes-1)/growBytes*growBytes)
	return j.room.full
}

func (j *Journal) grow(size, by int64) error {
	if limit := j.opts.MaxFileBytes; limit > 0 && size+by > limit {
		return fmt.Errorf("file has reached its limit of %d bytes: %w", limit, syscall.EFBIG)
	}
	return j.allocate(size, by)
}

// allocate gives a range of the file real blocks, and the file that length.
func (j *Journal) allocate(at, bytes int64) error {
	f, err := os.OpenFile(j.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	supported, err := allocate(f, at, bytes)
	if !supported {
		j.room.noAhead = true
		return f.Close()
	}
	if err != nil {
		return errors.Join(&os.PathError{Op: "allocate", Path: j.path, Err: err}, f.Close())
	}
	// The new size must be on disk before a meta page that speaks of it.
	return errors.Join(f.Sync(), f.Close())
}

// essential reports whether the request may use the reserve.
func (r *request) essential() bool {
	for i := range r.events {
		switch e := &r.events[i]; {
		case e.Essential, e.Kind == KindFinished, e.Kind == KindRemoved, e.Kind == KindOpened:
		default:
			return false
		}
	}
	return true
}

// lastResort reports whether the request may use the last of the reserve: an open
// must succeed so that reads and syncing go on, and removals give space back.
func (r *request) lastResort() bool {
	for i := range r.events {
		if k := r.events[i].Kind; k != KindOpened && k != KindRemoved {
			return false
		}
	}
	return true
}

// ration answers ordinary requests with the reason why there is no room, and
// plans those that may use the reserve.
func (j *Journal) ration(p *plan, cause error) *plan {
	j.room.rationed, j.room.wanted = true, min(max(p.bytes, j.room.wanted), maxWanted)
	j.fault.set(cause)
	j.acks.give(p.ackPuts, p.ackDeletes)
	var keep []*request
	for _, r := range p.batch {
		if r.essential() && (j.room.left > reserveBytes/4 || r.lastResort()) {
			keep = append(keep, r)
		} else {
			r.finish(j.degraded(cause))
		}
	}
	// Finished marks come first: acks only go out on their own, and only into the
	// first half of the reserve. They are hints and can wait.
	acks := 0
	if len(keep) > 0 && !anyEvents(keep) && j.room.left > reserveBytes/2 {
		acks = acksPerCommitWhenFull
	}
	return j.plan(keep, acks)
}

func anyEvents(batch []*request) bool {
	for _, r := range batch {
		if len(r.events) > 0 {
			return true
		}
	}
	return false
}
