// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// faultState is what health and callers may know of a failing disk.
type faultState struct {
	mu     sync.Mutex
	err    error
	failed chan struct{} // closed when this process cannot write any more
	fatal  bool
	logged time.Time // the committer's own
}

// logEvery is how often a failure that goes on is logged.
const logEvery = 30 * time.Second

func (f *faultState) init() { f.failed = make(chan struct{}) }

func (f *faultState) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faultState) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fatal {
		f.err = nil
	}
}

func (f *faultState) giveUp(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	if !f.fatal {
		f.fatal = true
		close(f.failed)
	}
}

// Degraded returns why the newest write failed, nil if it worked.
func (j *Journal) Degraded() error {
	j.fault.mu.Lock()
	defer j.fault.mu.Unlock()
	return j.fault.err
}

// Failed is closed when the engine cannot go on in this process: the file must
// be opened anew by another one. Reads of what is in memory still work.
func (j *Journal) Failed() <-chan struct{} { return j.fault.failed }

// ready reopens the engine after a failure. Caller holds commitMu.
func (j *Journal) ready() error {
	if j.shut {
		return ErrClosed
	}
	if j.broken == nil {
		return nil
	}
	if j.fault.fatal {
		return j.degraded(j.broken)
	}
	found, err := j.reopen()
	if err == nil {
		err = j.confirm()
	}
	if err != nil {
		j.fault.set(err)
		return j.degraded(err)
	}
	if found.Sequence != j.state.head.Sequence {
		// The commit that failed has landed after all, and its callers have heard
		// an error. Building on either belief would be wrong.
		return j.disown(found)
	}
	j.adopt(found)
	j.broken = nil
	return nil
}

// adopt takes over the head of a commit of acks that has landed though it
// failed: it may have trimmed.
func (j *Journal) adopt(found head) {
	j.stateMu.Lock()
	defer j.stateMu.Unlock()
	j.state.head = found
}

// disown ends all writing: the file is not what this process believes it to be.
func (j *Journal) disown(found head) error {
	err := &CorruptError{Path: j.path, Sequence: found.Sequence, Kind: ErrCorrupt, Hint: hintVerify,
		Err: fmt.Errorf("after a failed commit the head is %d, not %d", found.Sequence, j.state.head.Sequence)}
	j.fault.giveUp(err)
	return j.degraded(err)
}

func (j *Journal) degraded(err error) error {
	return fmt.Errorf("append to journal %s: %w: %w", j.path, ErrDegraded, err)
}

// settle finds out what a failed commit left behind. Its outcome is unknown:
// when the sync of the meta page fails, the engine reports an error, yet the
// commit is visible. So the file is reopened and its head compared. If the commit
// is there, confirm makes it durable before anybody hears "yes".
func (j *Journal) settle(p *plan, before head, cause error) error {
	j.fault.set(cause)
	if now := time.Now(); now.Sub(j.fault.logged) >= logEvery {
		j.fault.logged = now
		j.log.Error("journal commit fails", "path", j.path, "err", cause)
	}
	j.broken = cause
	if _, ok := errors.AsType[*panicError](cause); ok {
		j.fault.giveUp(cause)
		return j.degraded(cause)
	}
	found, err := j.reopen()
	if err != nil {
		return j.degraded(errors.Join(cause, err))
	}
	switch {
	case found.Sequence == j.state.head.Sequence:
		// It may have landed all the same: acks alone don't move the sequence.
		if err := j.confirm(); err != nil {
			return j.degraded(errors.Join(cause, err))
		}
		j.adopt(found)
		j.broken = nil
		return j.degraded(cause)
	case len(p.events) > 0 && found.Sequence == before.Sequence:
		return j.makeDurable(p, found, cause)
	default:
		return j.disown(found)
	}
}

// makeDurable sees to a commit that landed without being synced.
func (j *Journal) makeDurable(p *plan, found head, cause error) error {
	err := j.read(func(tx *bolt.Tx) error {
		for i, key := range p.keys {
			seq, _ := parseSequenceKey(key)
			got := tx.Bucket(bucketEvents).Get(key)
			if got == nil && seq <= found.Horizon {
				continue // trimmed by the commit that brought it
			}
			if string(got) != string(p.values[i]) {
				return errNotLanded
			}
		}
		return nil
	})
	if err == nil {
		err = j.confirm()
	}
	if err != nil {
		// Neither on disk for sure nor absent for sure: only a new process, which
		// reads the file as it finds it, can tell.
		err = errors.Join(cause, err)
		j.fault.giveUp(err)
		return j.degraded(err)
	}
	p.head = found
	j.broken = nil
	j.fault.clear()
	return nil
}

// confirm makes what the meta pages say durable, by writing them again, as they
// are, and syncing them. When a sync has failed, the system takes pages that
// never reached the disk for clean: the file reads as if they had, and no later
// sync brings them. The next commit would then reuse pages that the state on the
// disk still needs, and a power cut before its end would leave no state at all.
// The other pages of a commit need no such care: its meta page is written only
// after they were synced.
func (j *Journal) confirm() error {
	f, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("confirm journal: %w", err)
	}
	metas := make([]byte, 2*j.pageSize())
	_, err = f.ReadAt(metas, 0)
	if err == nil {
		_, err = f.WriteAt(metas, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("confirm journal %s: %w", j.path, err)
	}
	return nil
}

func (j *Journal) pageSize() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.db.Info().PageSize
}

// reopen replaces the engine and returns the head that the file has now.
func (j *Journal) reopen() (head, error) {
	if err := j.release(); err != nil {
		j.log.Warn("journal close fails", "path", j.path, "err", err)
	}
	if err := j.openEngine(); err != nil {
		return head{}, err
	}
	var h head
	err := j.read(func(tx *bolt.Tx) (err error) {
		h, err = j.view.head(tx)
		return err
	})
	return h, err
}
