// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
)

// fault is a rule: the nth call of a kind fails, and those after it if it lasts.
type fault struct {
	call  crash.Syscall
	nth   int
	errno syscall.Errno
	lasts bool
}

func (f fault) String() string {
	s := fmt.Sprintf("%s %d %v", f.call, f.nth, f.errno)
	if f.lasts {
		s += " and on"
	}
	return s
}

// injector makes calls of this process fail while it is armed.
type injector struct {
	mu     sync.Mutex
	armed  bool
	faults []fault
	counts map[crash.Syscall]int
	hits   int
	// unsynced: a name was changed since the directory was synced successfully.
	unsynced bool
	// unwritten: the journal was written to since it was synced successfully.
	unwritten bool
	hold      func(crash.Call) // called unlocked, before the decision
}

// inject starts the injector of this process, which must be a child.
func inject(t *testing.T) *injector {
	t.Helper()
	i := &injector{}
	err := crash.Intercept(i.handle, crash.Fsync, crash.Fdatasync, crash.Pwrite, crash.Fallocate, crash.Ftruncate,
		crash.Link, crash.Rename, crash.Flock)
	if err != nil {
		unsupported(err)
	}
	return i
}

func (i *injector) handle(c crash.Call) syscall.Errno {
	i.mu.Lock()
	hold := i.hold
	i.mu.Unlock()
	if hold != nil {
		hold(c)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	errno := i.decide(c)
	if errno != 0 {
		i.hits++
	}
	switch {
	case errno == crash.Short && filepath.Base(c.Path) == journal.FileName:
		i.unwritten = true
	case errno != 0:
	case c.Name == crash.Link || c.Name == crash.Rename:
		i.unsynced = true
	case c.Name == crash.Fsync && filepath.Ext(c.Path) == ".dir":
		i.unsynced = false
	case filepath.Base(c.Path) != journal.FileName:
	case c.Name == crash.Pwrite:
		i.unwritten = true
	case c.Name == crash.Fsync || c.Name == crash.Fdatasync:
		i.unwritten = false
	}
	return errno
}

func (i *injector) decide(c crash.Call) syscall.Errno {
	if !i.armed {
		return 0
	}
	i.counts[c.Name]++
	for _, f := range i.faults {
		if n := i.counts[c.Name]; f.call == c.Name && (n == f.nth || f.lasts && n > f.nth) {
			return f.errno
		}
	}
	return 0
}

// arm begins to count and to fail.
func (i *injector) arm(faults ...fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.armed, i.faults, i.counts, i.hits = true, faults, map[crash.Syscall]int{}, 0
}

// heal ends that, and tells how often calls failed.
func (i *injector) heal() (hits int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.armed = false
	return i.hits
}

// hit tells how often calls failed until now.
func (i *injector) hit() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hits
}

func (i *injector) onCall(hold func(crash.Call)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hold = hold
}

// durable says what is missing for an event that was just accepted to outlive
// the machine.
func (i *injector) durable() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.unwritten:
		return errors.New("accepted, but no sync of the file has succeeded since it was written to")
	case i.unsynced:
		return errors.New("accepted, but no sync of the directory has succeeded since a name in it was changed")
	}
	return nil
}

// begin forgets what an earlier case did to names.
func (i *injector) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unsynced, i.unwritten = false, false
}
