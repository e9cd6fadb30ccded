// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

// known is what a journal knows of pods, as the test keeps count of it.
type known struct {
	newest  map[types.UID]journal.Event
	acks    map[types.UID]journal.Ack
	objects map[types.UID][]byte
}

func noPods() known {
	return known{map[types.UID]journal.Event{}, map[types.UID]journal.Ack{}, map[types.UID][]byte{}}
}

func know(v view) (k known, err error) {
	k = noPods()
	for e, err := range v.Newest() {
		if err != nil {
			return k, err
		}
		k.newest[e.UID] = e
	}
	for uid, o := range v.Objects() {
		if o.Err != nil {
			return k, o.Err
		}
		k.objects[uid] = o.Object
	}
	k.acks, err = v.Acks()
	return k, err
}

// with is what is known after these events.
func (k known) with(events []journal.Event) known {
	k = known{maps.Clone(k.newest), maps.Clone(k.acks), maps.Clone(k.objects)}
	for _, e := range events {
		k.newest[e.UID] = e
		if e.Kind == journal.KindRemoved {
			delete(k.acks, e.UID)
			delete(k.objects, e.UID)
		}
		if e.Object != nil {
			k.objects[e.UID] = e.Object
		}
	}
	return k
}

func (k known) String() string {
	var b strings.Builder
	for _, e := range slices.SortedFunc(maps.Values(k.newest), func(a, b journal.Event) int { return int(a.Sequence) - int(b.Sequence) }) {
		b.WriteString(eventLine(e))
	}
	for _, uid := range slices.Sorted(maps.Keys(k.acks)) {
		fmt.Fprintf(&b, "ack %s %d\n", uid, k.acks[uid].Version)
	}
	for _, uid := range slices.Sorted(maps.Keys(k.objects)) {
		fmt.Fprintf(&b, "object %s %s\n", uid, sum(k.objects[uid]))
	}
	return b.String()
}

// faultCase is one call of a journal with faults in it.
type faultCase struct {
	t       *testing.T
	i       *injector
	dir     string
	options journal.Options
	j       *journal.Journal
	before  known
	once    bool // there is one fault, and it does not last
	locked  bool // the engine can't be reopened at once
}

// operation is what faults are injected into.
type operation struct {
	name string
	// limit of events from before do on; prepare has none.
	limit int
	// prepare fills the journal; it is closed and opened again before do. Without
	// it there is no file.
	prepare func(c *faultCase)
	// do returns what was accepted.
	do func(c *faultCase) ([]journal.Event, error)
	// opens: do opens the journal.
	opens bool
}

func (c *faultCase) path() string { return filepath.Join(c.dir, journal.FileName) }

func (c *faultCase) open() (err error) {
	c.j, err = journal.Open(c.path(), c.options)
	return err
}

var faultRandom = rand.NewChaCha8([32]byte{4, 2})

func blob(size int) []byte {
	b := make([]byte, size)
	faultRandom.Read(b) //nolint:errcheck // it does not fail
	return b
}

func pod(uid types.UID, kind journal.Kind, size int) journal.Event {
	e := journal.Event{Kind: kind, UID: uid, Namespace: "default", Name: "pod"}
	if kind != journal.KindRemoved {
		e.Status = blob(size)
	}
	return e
}

func (c *faultCase) append(events ...journal.Event) ([]journal.Event, error) {
	return c.j.Append(context.Background(), events...)
}

func (c *faultCase) fill(events ...journal.Event) {
	c.t.Helper()
	if _, err := c.append(events...); err != nil {
		c.t.Fatal(err)
	}
}

func threePods(c *faultCase) {
	a := pod("a", journal.KindSet, 400)
	a.Object = blob(600)
	c.fill(a, pod("b", journal.KindSet, 400), pod("c", journal.KindSet, 400))
	c.j.PutAck(journal.Ack{UID: "a", LiveUID: "a", Version: 1})
}

func history(pods, events int) func(c *faultCase) {
	return func(c *faultCase) {
		for at := 0; at < events; at += 1000 {
			var batch []journal.Event
			for i := range min(1000, events-at) {
				batch = append(batch, pod(types.UID(fmt.Sprint("p", i%pods)), journal.KindSet, 30))
			}
			c.fill(batch...)
		}
		threePods(c)
	}
}

var operations = []operation{
	{name: "append", prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		return c.append(pod("a", journal.KindSet, 500))
	}},
	{name: "append many", prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		back := pod("c", journal.KindSet, 80)
		back.Object = blob(100)
		return c.append(pod("a", journal.KindRemoved, 0), pod("b", journal.KindFinished, 300), pod("c", journal.KindRemoved, 0), back)
	}},
	{name: "append with growth", prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		return c.append(pod("a", journal.KindSet, 1_500_000))
	}},
	{name: "append with trim", limit: 50, prepare: history(9, 400),
		do: func(c *faultCase) ([]journal.Event, error) {
			var batch []journal.Event
			for i := range 40 {
				batch = append(batch, pod(types.UID(fmt.Sprint("p", i%9)), journal.KindSet, 20))
			}
			return c.append(batch...)
		}},
	{name: "append more than is kept", limit: 10, prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		var batch []journal.Event
		for range 40 {
			batch = append(batch, pod("a", journal.KindSet, 20))
		}
		return c.append(batch...)
	}},
	{name: "append with index", prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		var batch []journal.Event
		for i := range 1030 {
			batch = append(batch, pod(types.UID(fmt.Sprint("p", i%9)), journal.KindSet, 20))
		}
		return c.append(batch...)
	}},
	{name: "acks", prepare: threePods, do: func(c *faultCase) ([]journal.Event, error) {
		c.j.PutAck(journal.Ack{UID: "b", LiveUID: "b", Version: 1})
		c.j.ForgetAck("a")
		return nil, c.j.Flush(context.Background())
	}},
	// The commit of the open trims as much as one commit may; that of the acks
	// goes on with it.
	{name: "acks with trim", limit: 100, prepare: history(5, 9000), do: func(c *faultCase) ([]journal.Event, error) {
		c.j.PutAck(journal.Ack{UID: "b", LiveUID: "b", Version: 1})
		return nil, c.j.Flush(context.Background())
	}},
	{name: "create", opens: true, do: func(c *faultCase) ([]journal.Event, error) { return nil, c.open() }},
	{name: "open", prepare: threePods, opens: true, do: func(c *faultCase) ([]journal.Event, error) { return nil, c.open() }},
	{name: "open with compaction", limit: 20, opens: true, prepare: func(c *faultCase) {
		for range 2 {
			c.fill(pod("x", journal.KindSet, 2_200_000))
		}
		history(5, 40)(c)
	}, do: func(c *faultCase) ([]journal.Event, error) {
		before, err := os.Stat(c.path())
		if err != nil {
			return nil, err
		}
		if err := c.open(); err != nil {
			return nil, err
		}
		if after, _ := os.Stat(c.path()); c.i.hit() == 0 && after.Size() >= before.Size() {
			return nil, fmt.Errorf("it was not compacted: %d bytes before, %d after", before.Size(), after.Size())
		}
		return nil, nil
	}},
}

// TestG10_Faults lets each call that writes or syncs fail, one at a time, once
// and for good, in each operation. What was accepted stays, what was refused
// leaves no trace, no version is given twice, and the journal goes on or says
// that it can't.
func TestG10_Faults(t *testing.T) {
	if raceDetector() {
		t.Skip("one caller at a time: nothing for the race detector, and TestG10_FaultsAmongMany has many")
	}
	if os.Getenv(childEnv) != "fault" {
		out, skipped := inChild(t, "fault")
		if skipped != "" {
			t.Skip(skipped)
		}
		for _, line := range regexp.MustCompile(`(?m)^.*\bfaults in .*$`).FindAll(out, -1) {
			t.Logf("%s", bytes.TrimSpace(line))
		}
		return
	}
	i := inject(t)
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			start, total := time.Now(), 0
			from := op.ready(t, i)
			calls := op.count(t, i, from)
			for _, call := range []crash.Syscall{crash.Fdatasync, crash.Fsync, crash.Pwrite, crash.Fallocate, crash.Ftruncate, crash.Link, crash.Rename} {
				for nth := range calls[call] {
					for _, f := range []fault{{call, nth + 1, syscall.EIO, false}, {call, nth + 1, syscall.ENOSPC, true}} {
						total++
						t.Run(f.String(), func(t *testing.T) { op.run(t, i, from, f) })
					}
				}
			}
			t.Logf("%d faults in %s, %v", total, op.name, time.Since(start).Round(time.Millisecond))
			if total < 4 {
				t.Errorf("only %d: the calls were not seen", total)
			}
		})
	}
}

// TestG10_FaultThenLocked: while the engine is closed to be reopened after a
// failure, somebody else takes the file's lock. The commit that failed may have
// landed; what follows must not be built on the assumption that it didn't.
func TestG10_FaultThenLocked(t *testing.T) {
	if raceDetector() {
		t.Skip("one caller at a time: nothing for the race detector, and TestG10_FaultsAmongMany has many")
	}
	if os.Getenv(childEnv) != "fault" {
		if _, skipped := inChild(t, "fault"); skipped != "" {
			t.Skip(skipped)
		}
		return
	}
	i := inject(t)
	for _, op := range operations {
		if op.opens {
			continue
		}
		from := op.ready(t, i)
		for nth := 1; nth <= 2; nth++ {
			t.Run(fmt.Sprint(op.name, " sync ", nth), func(t *testing.T) {
				op.run(t, i, from, fault{crash.Fdatasync, nth, syscall.EIO, false}, fault{crash.Flock, 1, syscall.EWOULDBLOCK, true})
			})
		}
	}
}

// prepared is what an operation begins with; faults are many, so it is made once.
type prepared struct {
	dir    string
	before known
}

func (op operation) ready(t *testing.T, i *injector) prepared {
	c := &faultCase{t: t, i: i, dir: fastDir(t) + "/journal.dir", before: noPods()}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if op.prepare == nil {
		return prepared{c.dir, c.before}
	}
	c.options.Retention.MaxEvents = 1 << 20
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	op.prepare(c)
	before, err := know(c.j)
	if err := errors.Join(err, c.j.Close()); err != nil {
		t.Fatal(err)
	}
	c.options.Retention.MaxEvents = op.limit
	if op.opens { // trims; what is faulted is the next one
		if err := c.open(); err != nil {
			t.Fatal(err)
		}
		if err := c.j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return prepared{c.dir, before}
}

func (op operation) begin(t *testing.T, i *injector, from prepared) *faultCase {
	c := &faultCase{t: t, i: i, dir: fastDir(t) + "/journal.dir", before: from.before}
	c.options.LockTimeout = 60 * time.Millisecond
	c.options.Retention.MaxEvents = op.limit
	i.begin()
	if err := os.CopyFS(c.dir, os.DirFS(from.dir)); err != nil {
		t.Fatal(err)
	}
	if op.opens {
		return c
	}
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	return c
}

// count runs the operation without a fault.
func (op operation) count(t *testing.T, i *injector, from prepared) map[crash.Syscall]int {
	c := op.begin(t, i, from)
	i.arm()
	if _, err := op.do(c); err != nil {
		t.Fatal(err)
	}
	i.heal()
	counts := maps.Clone(i.counts)
	if err := c.j.Close(); err != nil {
		t.Fatal(err)
	}
	return counts
}

func (op operation) run(t *testing.T, i *injector, from prepared, faults ...fault) {
	c := op.begin(t, i, from)
	c.once = !faults[0].lasts && faults[len(faults)-1].call != crash.Flock
	c.locked = faults[len(faults)-1].call == crash.Flock
	i.arm(faults...)
	accepted, err := op.do(c)
	// bbolt does not wrap what growth fails with.
	if err != nil && (harmless(faults[0].errno) || !errors.Is(err, faults[0].errno) && !strings.Contains(err.Error(), faults[0].errno.Error())) {
		t.Errorf("the cause is not named: %v", err)
	}
	if err == nil {
		if err := i.durable(); err != nil {
			t.Error(err)
		}
	}
	degraded := error(nil)
	if c.j != nil {
		degraded = c.j.Degraded()
	}
	if i.heal(); i.hits == 0 {
		if err := c.j.Close(); err != nil {
			t.Error(err)
		}
		if slices.ContainsFunc(faults, func(f fault) bool { return f.nth > 4 }) {
			t.Skip("fewer calls than when they were counted: which free pages lie side by side, and are written at once, is left to chance")
		}
		t.Fatal("no call failed")
	}
	if op.opens {
		c.opened(err)
	} else {
		c.used(accepted, err, degraded)
	}
}

// harmless faults are for the caller of the system call to make good.
func harmless(errno syscall.Errno) bool { return errno == crash.Short || errno == syscall.EINTR }

// opened goes on after an Open: the next one works, if this one didn't.
func (c *faultCase) opened(err error) {
	if err != nil {
		if err := c.open(); err != nil {
			c.t.Fatalf("open again: %v", err)
		}
	}
	c.goOn(c.before)
}

// used goes on after a call on a journal that was open.
func (c *faultCase) used(accepted []journal.Event, err, degraded error) {
	t, after := c.t, c.before.with(accepted)
	if err != nil && (!errors.Is(err, journal.ErrDegraded) || degraded == nil) {
		t.Errorf("error %v, degraded: %v", err, degraded)
	}
	select {
	case <-c.j.Failed():
		if c.once {
			t.Error("one failure, and the process has to end")
		}
		c.failed(after)
		return
	default:
	}
	live, readErr := know(c.j)
	if readErr != nil && !(c.locked && errors.Is(readErr, journal.ErrDegraded)) {
		t.Errorf("reads do not go on: %v", readErr)
	}
	after.acks = live.acks // those are in memory, durable or not
	if readErr == nil && live.String() != after.String() {
		t.Errorf("after %v there is\n%v\nwant\n%v", err, live, after)
	}
	c.goOn(after)
}

// failed: this process can't write any more, and says so. What was refused last
// may be there for the next process, wholly.
func (c *faultCase) failed(want known) {
	t := c.t
	if _, err := c.append(pod("next", journal.KindSet, 10)); !errors.Is(err, journal.ErrDegraded) {
		t.Errorf("append to a failed journal: %v", err)
	}
	c.j.Close()
	// The next process: this one may hold the file's lock until it ends.
	next := fastDir(t) + "/journal.dir"
	if err := os.CopyFS(next, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	c.dir = next
	if err := c.open(); err != nil {
		t.Fatal(err)
	}
	got, err := know(c.j)
	if err != nil {
		t.Fatal(err)
	}
	for uid, e := range want.newest {
		if got.newest[uid].Version < e.Version {
			t.Errorf("%s has version %d, accepted was %d", uid, got.newest[uid].Version, e.Version)
		}
	}
	c.goOn(got)
}

// goOn appends, and compares what is there now and after a restart.
func (c *faultCase) goOn(want known) {
	t := c.t
	got, err := c.append(pod("b", journal.KindSet, 700), pod("new", journal.KindSet, 70))
	if err != nil && c.locked {
		// The engine could be reopened only now, and the head is another one.
		select {
		case <-c.j.Failed():
			c.locked = false
			c.failed(want)
			return
		default:
		}
	}
	if err != nil {
		t.Errorf("append after the fault: %v", err)
	} else if v, old := got[0].Version, want.newest["b"].Version; v != old+1 {
		t.Errorf("b has version %d after %d", v, old)
	}
	if err := c.i.durable(); err != nil {
		t.Error(err)
	}
	if err := c.j.Degraded(); err != nil {
		t.Errorf("still degraded: %v", err)
	}
	want = want.with(got)
	want.acks, err = c.j.Acks()
	if err := errors.Join(err, c.j.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	d, err := describe(c.path())
	if err != nil || len(d.problems) > 0 || d.suspect {
		t.Fatalf("after the restart: %v %q", err, d.problems)
	}
	r, err := journal.OpenReadOnly(c.path(), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found, err := know(r)
	if err != nil {
		t.Fatal(err)
	}
	if found.String() != want.String() {
		t.Errorf("after the restart there is\n%v\nwant\n%v", found, want)
	}
	if err := leftovers(c.dir); err != nil {
		t.Error(err)
	}
}
