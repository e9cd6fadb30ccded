// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
)

// faultKind makes the faults of one way to fail at the nth of a kind of calls.
type faultKind struct {
	name  string
	calls []crash.Syscall
	make  func(call crash.Syscall, nth int) []fault
}

// orders are the calls that write or order what is on the disk.
var orders = []crash.Syscall{crash.Fdatasync, crash.Fsync, crash.Pwrite, crash.Fallocate, crash.Ftruncate, crash.Link, crash.Rename}

func lasting(errno syscall.Errno) func(crash.Syscall, int) []fault {
	return func(call crash.Syscall, nth int) []fault { return []fault{{call, nth, errno, true}} }
}

var faultKinds = []faultKind{
	// The disk became read-only, as file systems do that found an error: all that
	// follows fails, of each kind.
	{"read-only", orders, func(call crash.Syscall, nth int) []fault {
		faults := []fault{{call, nth, syscall.EROFS, true}}
		for _, other := range orders {
			if other != call && other != crash.Fdatasync && other != crash.Fsync { // what was written before can still be synced
				faults = append(faults, fault{other, 1, syscall.EROFS, true})
			}
		}
		return faults
	}},
	{"quota exceeded", []crash.Syscall{crash.Pwrite, crash.Fallocate, crash.Ftruncate, crash.Link, crash.Rename}, lasting(syscall.EDQUOT)},
	{"all writes short", []crash.Syscall{crash.Pwrite}, lasting(crash.Short)},
	{"short, then full", []crash.Syscall{crash.Pwrite}, func(call crash.Syscall, nth int) []fault {
		return []fault{{call, nth + 1, syscall.ENOSPC, true}, {call, nth, crash.Short, false}}
	}},
	{"short, then an error", []crash.Syscall{crash.Pwrite}, func(call crash.Syscall, nth int) []fault {
		return []fault{{call, nth + 1, syscall.EIO, false}, {call, nth, crash.Short, false}}
	}},
	{"interrupted", []crash.Syscall{crash.Pwrite}, func(call crash.Syscall, nth int) []fault { return []fault{{call, nth, syscall.EINTR, false}} }},
}

// TestG10_FaultKinds is TestG10_Faults for the other ways in which a disk fails:
// it becomes read-only, a quota is used up, writes are done by half.
func TestG10_FaultKinds(t *testing.T) {
	if raceDetector() {
		t.Skip("one caller at a time: nothing for the race detector, and TestG10_FaultsAmongMany has many")
	}
	if os.Getenv(childEnv) != "fault" {
		out, skipped := inChild(t, "fault")
		if skipped != "" {
			t.Skip(skipped)
		}
		for _, line := range regexp.MustCompile(`(?m)^.*\bfaults of kind .*$`).FindAll(out, -1) {
			t.Logf("%s", bytes.TrimSpace(line))
		}
		return
	}
	most := number(t, "STATUSSTORE_FAULTS", 6) // of one kind of calls in one operation, about
	i := inject(t)
	ready := map[string]prepared{}
	counts := map[string]map[crash.Syscall]int{}
	for _, op := range operations {
		ready[op.name] = op.ready(t, i)
		counts[op.name] = op.count(t, i, ready[op.name])
	}
	for _, kind := range faultKinds {
		t.Run(kind.name, func(t *testing.T) {
			start, total := time.Now(), 0
			for _, op := range operations {
				for _, call := range kind.calls {
					n := counts[op.name][call]
					for nth := 1; nth <= n; nth += max(1, n/most) { // all of them, or some of many
						total++
						faults := kind.make(call, nth)
						t.Run(fmt.Sprint(op.name, ": ", faults[0]), func(t *testing.T) { op.run(t, i, ready[op.name], faults...) })
					}
				}
			}
			t.Logf("%d faults of kind %q in %d operations, %v", total, kind.name, len(operations), time.Since(start).Round(time.Millisecond))
			if total < len(operations) {
				t.Errorf("only %d: the calls were not seen", total)
			}
		})
	}
}

// TestG10_FaultSlowSync holds a sync for as long as it takes: readers go on,
// callers who give up hear that their event may have been stored, and those who
// wait get their answer when the disk does, not before.
func TestG10_FaultSlowSync(t *testing.T) {
	if os.Getenv(childEnv) != "fault" {
		if _, skipped := inChild(t, "fault"); skipped != "" {
			t.Skip(skipped)
		}
		return
	}
	i := inject(t)
	dir := filepath.Join(fastDir(t), "journal.dir")
	path := filepath.Join(dir, journal.FileName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := j.Append(t.Context(), pod("a", journal.KindSet, 100))
	if err != nil {
		t.Fatal(err)
	}
	held, release := make(chan struct{}), make(chan struct{})
	holding := true
	i.onCall(func(c crash.Call) { // one at a time
		if holding && c.Name == crash.Fdatasync {
			holding = false
			close(held)
			<-release
		}
	})
	type answer struct {
		events []journal.Event
		err    error
	}
	appendLater := func(ctx context.Context, e journal.Event) chan answer {
		done := make(chan answer, 1)
		go func() {
			events, err := j.Append(ctx, e)
			done <- answer{events, err}
		}()
		return done
	}
	leads := appendLater(t.Context(), pod("a", journal.KindSet, 100))
	select {
	case <-held:
	case <-time.After(time.Minute):
		t.Fatal("the commit does not get to its sync")
	}
	waits := appendLater(t.Context(), pod("b", journal.KindSet, 100))
	ctx, leave := context.WithCancelCause(t.Context())
	leaves := appendLater(ctx, pod("c", journal.KindSet, 100))
	impatient := errors.New("no more patience")
	leave(impatient)
	if got := <-leaves; !errors.Is(got.err, impatient) {
		t.Errorf("who gives up hears %v", got.err)
	}

	// Meanwhile.
	if head, _ := j.Head(); head != first[0].Sequence {
		t.Errorf("head %d, the newest durable event is %d", head, first[0].Sequence)
	}
	for e, err := range j.Newest() {
		if err != nil || e.Sequence > first[0].Sequence {
			t.Errorf("event %d is read: %v", e.Sequence, err)
		}
	}
	if err := j.Degraded(); err != nil {
		t.Errorf("slow is not degraded: %v", err)
	}
	for _, done := range []chan answer{leads, waits} {
		select {
		case got := <-done:
			t.Errorf("answered before the sync: %v %v", got.events, got.err)
		default:
		}
	}
	close(release)
	for _, done := range []chan answer{leads, waits} {
		if got := <-done; got.err != nil || len(got.events) != 1 {
			t.Errorf("after the sync: %v", got.err)
		}
	}
	if err := i.durable(); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err := describe(path); err != nil || len(d.problems) > 0 || !d.clean {
		t.Errorf("%v %q, %s", err, d.problems, closing(d.clean))
	}
}
