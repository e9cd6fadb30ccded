// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/test/compare/report"
)

// TestAppend measures everything, briefly.
func TestAppend(t *testing.T) {
	r := report.New(nil)
	err := Append(r, Options{Dir: t.TempDir(), Rounds: 1, Slice: 20 * time.Millisecond, Writers: []int{1, 64}, Fill: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Sections) != 2 {
		t.Fatalf("got %d tables, want one per number of writers", len(r.Sections))
	}
	for _, s := range r.Sections {
		if len(s.Rows) != len(Names()) {
			t.Errorf("%s: got %d rows, want one for each of %q", s.Title, len(s.Rows), Names())
		}
		for _, row := range s.Rows {
			for i, v := range row.Values {
				if !(v > 0) {
					t.Errorf("%s, %s, %s: got %v, want more than 0", s.Title, row.Name, s.Columns[i], v)
				}
			}
		}
	}
	if len(r.Targets) != 6 {
		t.Errorf("got targets %+v, want one of 1 writer and five of 64", r.Targets)
	}
}

func TestAppend_UnknownEngine(t *testing.T) {
	r := report.New(nil)
	err := Append(r, Options{Dir: t.TempDir(), Rounds: 1, Slice: time.Millisecond, Writers: []int{1}, Engines: []string{"paper"}})
	if err == nil {
		t.Error("got no error, want one that names the engine")
	}
}

func TestHistory(t *testing.T) {
	r := report.New(nil)
	if err := History(r, HistoryOptions{Dir: t.TempDir(), Events: 3000, Repeats: 2, Changes: 1000}); err != nil {
		t.Fatal(err)
	}
	if len(r.Sections) != 2 || len(r.Targets) != 3 {
		t.Errorf("got %d tables and %d targets, want 2 and 3: the run is too short for the file's size", len(r.Sections), len(r.Targets))
	}
}

// recording notes what it is given, and fails once.
type recording struct {
	mu      sync.Mutex
	events  []types.UID
	acks    map[types.UID]uint64
	commits int
	broken  error
}

func (r *recording) commit(first uint64, batch []event, acks []ack) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits++
	if r.broken != nil {
		return r.broken
	}
	if want := uint64(len(r.events)) + 1; first != want {
		return fmt.Errorf("first sequence is %d, want %d", first, want)
	}
	for _, e := range batch {
		r.events = append(r.events, e.uid)
	}
	for _, a := range acks {
		r.acks[a.uid] = a.sequence
	}
	time.Sleep(time.Millisecond) // as a disk: the others queue meanwhile
	return nil
}

func (r *recording) close() error { return nil }

// TestGrouped: each event is committed once, in order, many in one commit.
func TestGrouped(t *testing.T) {
	to := &recording{acks: map[types.UID]uint64{}}
	g := newGrouped(to)
	var wg sync.WaitGroup
	const writers, each = 32, 20
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				if err := g.append(event{uid: types.UID(fmt.Sprint(w, "-", n))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := len(to.events); got != writers*each {
		t.Fatalf("got %d events, want %d", got, writers*each)
	}
	slices.Sort(to.events)
	if got := len(slices.Compact(to.events)); got != writers*each {
		t.Errorf("got %d different events, want %d", got, writers*each)
	}
	if to.commits >= writers*each/2 {
		t.Errorf("got %d commits of %d events, want several events in a commit", to.commits, writers*each)
	}
	if len(to.acks) < writers*(each-1) {
		t.Errorf("got acks of %d events, want those of all but the last commits", len(to.acks))
	}
}

func TestGrouped_Error(t *testing.T) {
	broken := errors.New("broken")
	to := &recording{acks: map[types.UID]uint64{}, broken: broken}
	g := newGrouped(to)
	if err := g.append(event{uid: "a"}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the commit's error", err)
	}
	to.broken = nil
	if err := g.append(event{uid: "b"}); err != nil {
		t.Errorf("after an error: got %v, want the same sequence to be used again", err)
	}
}

func TestTrimmer(t *testing.T) {
	var trim trimmer
	if from, to := trim.next(retained); from != to {
		t.Errorf("at the limit: got [%d, %d), want nothing", from, to)
	}
	from, to := trim.next(retained + trimAt + 1)
	if from != 1 || to != trimAt+2 {
		t.Errorf("beyond it: got [%d, %d), want [1, %d)", from, to, trimAt+2)
	}
	if from, to := trim.next(retained + trimAt + 2); from != to {
		t.Errorf("right after: got [%d, %d), want nothing", from, to)
	}
}

// TestPeers_DoTheJob looks into the stores that are said to do the same job.
func TestPeers_DoTheJob(t *testing.T) {
	const events = retained + 3*trimAt
	fill := func(t *testing.T, e engine) {
		t.Helper()
		m := &run{open: map[string]engine{"x": e}, o: Options{Fill: events}}
		if err := m.prepare(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.write("x", 256, events, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, kept, acked int) {
		t.Helper()
		if kept < retained || kept > retained+2*trimAt {
			t.Errorf("got %d events, want %d and some", kept, retained)
		}
		if acked < pods*9/10 {
			t.Errorf("got acks of %d pods, want those of nearly all %d", acked, pods)
		}
	}
	open := func(t *testing.T, open func(string) (engine, error)) engine {
		t.Helper()
		e, err := open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.close(); err != nil {
				t.Error(err)
			}
		})
		fill(t, e)
		return e
	}
	t.Run("pebble", func(t *testing.T) {
		db := open(t, openPebble).(*grouped).to.(*pebbleStore).db
		count := func(prefix byte) (n int) {
			i, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefix}, UpperBound: []byte{prefix + 1}})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			for ok := i.First(); ok; ok = i.Next() {
				n++
			}
			return n
		}
		check(t, count('e'), count('a'))
	})
	t.Run("sqlite", func(t *testing.T) {
		db := open(t, openSQLite).(*grouped).to.(*sqliteStore).db
		var mode string
		var full, kept, acked int
		for query, to := range map[string]any{
			"PRAGMA journal_mode": &mode, "PRAGMA synchronous": &full,
			"SELECT count(*) FROM events": &kept, "SELECT count(*) FROM acks": &acked,
		} {
			if err := db.QueryRow(query).Scan(to); err != nil {
				t.Fatal(err)
			}
		}
		if mode != "wal" || full != 2 {
			t.Errorf("got journal_mode %s, synchronous %d, want wal and 2 (FULL)", mode, full)
		}
		check(t, kept, acked)
	})
	t.Run("bbolt Batch", func(t *testing.T) {
		err := open(t, openBoltBatch).(*boltBatch).db.View(func(tx *bolt.Tx) error {
			check(t, tx.Bucket([]byte("events")).Stats().KeyN, tx.Bucket([]byte("acks")).Stats().KeyN)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
