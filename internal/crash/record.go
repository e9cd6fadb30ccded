// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
)

// Stage is a moment at which the power may go.
type Stage struct {
	// Label says what the program was doing.
	Label string
	// Durable is what is certainly there afterwards, Volatile what may be.
	Durable, Volatile Tree
	// From and To number the states that may be found, both included: see
	// Recorder.Expect.
	From, To int
}

// Settled reports whether the stage has one image only.
func (s *Stage) Settled() bool { return s.Durable.same(s.Volatile) }

// Recorder makes the Log of what a program does in a directory. The program must
// do it in one thread.
type Recorder struct {
	dir   string
	inode Inode

	mu       sync.Mutex
	log      *Log
	durable  Tree
	seen     Tree // the newest capture
	label    string
	from, to int
	err      error
}

// NewRecorder takes what is in dir now as durable.
func NewRecorder(dir string) (*Recorder, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("record directory: %w", err)
	}
	r := &Recorder{dir: dir, log: newLog()}
	if r.inode, err = inodeOf(dir); err != nil {
		return nil, fmt.Errorf("record directory: %w", err)
	}
	if r.seen, err = r.log.capture(dir, newTree()); err != nil {
		return nil, err
	}
	r.durable = r.seen.clone()
	return r, nil
}

// Attach records each ordering call of this process. See Intercept.
func (r *Recorder) Attach() error {
	return Intercept(r.handle, Fsync, Fdatasync, Link, Rename, Unlink)
}

// Expect says which states may be found from now on: those numbered from to to.
func (r *Recorder) Expect(label string, from, to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.label, r.from, r.to = label, from, to
}

// Rest notes a stage between two calls of the program, when nothing is under way.
func (r *Recorder) Rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage("at rest")
}

// Settle takes what is in the directory now as durable.
func (r *Recorder) Settle() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, err := r.log.capture(r.dir, r.seen)
	if err != nil {
		return err
	}
	r.seen, r.durable = seen, seen.clone()
	return nil
}

// Commit notes the stages of one bbolt commit that changed the named file since
// the newest stage: growth, data pages, meta page, each followed by a sync.
func (r *Recorder) Commit(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, err := r.log.capture(r.dir, r.seen)
	if err != nil {
		r.err = err
		return
	}
	inode := now.Names[name]
	before, after := r.durable.Files[inode], now.Files[inode]
	grown := after
	grown.Pages = append(before.Pages[:len(before.Pages):len(before.Pages)], make([]int32, len(after.Pages)-len(before.Pages))...)
	data := after
	data.Pages = append(append([]int32{}, before.Pages[:2]...), after.Pages[2:]...)
	for _, step := range []struct {
		what string
		file File
	}{{"growth", grown}, {"data pages", data}, {"meta page", after}} {
		r.seen = r.durable.clone()
		r.seen.Files[inode] = step.file
		r.note(step.what)
		r.durable = r.seen.clone()
	}
}

// Log returns the recording.
func (r *Recorder) Log() (*Log, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log, r.err
}

func (r *Recorder) handle(c Call) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	var inode Inode
	if c.FD >= 0 {
		var err error
		if inode, err = inodeOfFD(c.FD); err != nil {
			r.err = fmt.Errorf("record %s: %w", c.Name, err)
			return 0
		}
	}
	r.stage(fmt.Sprintf("%s %s", c.Name, filepath.Base(c.Path)))
	switch {
	case inode == "":
	case inode == r.inode:
		r.durable.Names = r.seen.clone().Names
	default:
		if f, ok := r.seen.Files[inode]; ok {
			if c.Name == Fdatasync {
				// What was written is there, but file systems have lost sizes that
				// only fdatasync had asked for (boltdb issue 284).
				f.Size = r.durable.Files[inode].Size
			}
			r.durable.Files[inode] = f
		}
	}
	return 0
}

func (r *Recorder) stage(what string) {
	seen, err := r.log.capture(r.dir, r.seen)
	if err != nil {
		r.err = err
		return
	}
	// A file that lost its name may still be what a durable name means.
	for inode, f := range r.seen.Files {
		if _, ok := seen.Files[inode]; !ok {
			seen.Files[inode] = f
		}
	}
	r.seen = seen
	r.note(what)
}

// note adds the stage unless nothing has changed since the one before.
func (r *Recorder) note(what string) {
	s := Stage{Label: r.label + ": " + what, Durable: r.durable.clone(), Volatile: r.seen.clone(), From: r.from, To: r.to}
	if n := len(r.log.Stages); n > 0 {
		last := &r.log.Stages[n-1]
		if last.From == s.From && last.To == s.To && last.Durable.same(s.Durable) && last.Volatile.same(s.Volatile) {
			return
		}
	}
	r.log.Stages = append(r.log.Stages, s)
}
