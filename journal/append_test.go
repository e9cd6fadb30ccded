// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestG1_EventsReadBackAsAppended(t *testing.T) {
	j := openNew(t, Options{Software: "test"})
	in := set("a", string(bytes.Repeat([]byte("status "), 50)))
	in.Aux = []byte{1, 2, 3}
	in.Attributes = map[string]string{"container": "app", "message": "ünïcode\x00"}
	want := mustAppend(t, j, in)[0]
	j = reopen(t, j)
	var got Event
	for e, err := range j.Events(want.Sequence, want.Sequence) {
		if err != nil {
			t.Fatal(err)
		}
		got = e
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-appended +read:\n%s", diff)
	}
}

func TestG2_VersionsPerKind(t *testing.T) {
	j := openNew(t, Options{})
	steps := []struct {
		name        string
		event       Event
		version     Version
		incarnation Incarnation
		finished    bool
	}{
		{"first", set("a", "1"), 1, 1, false},
		{"another pod has its own", set("b", "1"), 1, 1, false},
		{"grows by one", set("a", "2"), 2, 1, false},
		{"rejected leaves it", Event{Kind: KindRejected, UID: "a"}, 2, 1, false},
		{"rejected of an unknown pod", Event{Kind: KindRejected, UID: "x"}, 0, 0, false},
		{"finished counts", finished("a", "2"), 3, 1, true},
		{"finished stays", set("a", "3"), 4, 1, true},
		{"removed counts", removed("a"), 5, 1, true},
		{"a new incarnation goes on and is not finished", set("a", "4"), 6, 2, false},
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			got := mustAppend(t, j, s.event)[0]
			if got.Version != s.version || got.Incarnation != s.incarnation || got.Finished != s.finished {
				t.Errorf("got version %d incarnation %d finished %v", got.Version, got.Incarnation, got.Finished)
			}
		})
		j = reopen(t, j)
	}
}

func TestAppendRefuses(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("gone", "1"), removed("gone"))
	before, _ := j.Head()
	tests := []struct {
		name  string
		event Event
		want  error
	}{
		{"finished for an unknown pod", finished("a", "1"), ErrNoPod},
		{"removed for an unknown pod", removed("a"), ErrNoPod},
		{"removed for a tombstone", removed("gone"), ErrNoPod},
		{"too large", set("a", string(make([]byte, MaxStatusBytes+1))), ErrTooLarge},
		{"long UID", set(types.UID(make([]byte, maxUIDBytes+1)), "1"), ErrTooLarge},
		{"no UID", set("", "1"), nil},
		{"opened", Event{Kind: KindOpened}, nil},
		{"unknown kind", Event{Kind: 99, UID: "a"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := j.Append(t.Context(), tt.event)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if after, _ := j.Head(); after != before {
		t.Errorf("head moved from %d to %d", before, after)
	}
}

func TestAppendIsAtomic(t *testing.T) {
	j := openNew(t, Options{})
	_, err := j.Append(t.Context(), set("a", "1"), removed("nobody"))
	if !errors.Is(err, ErrNoPod) {
		t.Fatalf("got %v", err)
	}
	if got := all(t, j); len(got) != 1 {
		t.Errorf("the journal has %d events, want only the opened one", len(got))
	}
	if got := mustAppend(t, j, set("a", "1"))[0]; got.Version != 1 || got.Sequence != 2 {
		t.Errorf("a refused append used up version %d, sequence %d", got.Version-1, got.Sequence-1)
	}
}

// TestGroupCommit: concurrent appends share commits, each caller gets its own
// event, and OnCommit sees them all in order before the callers do.
func TestGroupCommit(t *testing.T) {
	var mu sync.Mutex
	var seen []Sequence
	var commits int
	visible := map[Sequence]bool{}
	j := openNew(t, Options{OnCommit: func(events []Event) {
		mu.Lock()
		defer mu.Unlock()
		commits++
		for _, e := range events {
			seen = append(seen, e.Sequence)
			visible[e.Sequence] = true
		}
	}})
	const writers, each = 32, 50
	var wg sync.WaitGroup
	for w := range writers {
		uid := types.UID(fmt.Sprint("pod-", w))
		wg.Go(func() {
			for i := range each {
				got, err := j.Append(t.Context(), set(uid, fmt.Sprint("status ", i)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if !visible[got[0].Sequence] {
					t.Errorf("Append of %d returned before OnCommit", got[0].Sequence)
				}
				mu.Unlock()
				if got[0].UID != uid || got[0].Version != Version(i+1) {
					t.Errorf("%s got event of %s, version %d, want %d", uid, got[0].UID, got[0].Version, i+1)
				}
			}
		})
	}
	wg.Wait()
	if len(seen) != writers*each+1 { // and the opened event
		t.Fatalf("OnCommit saw %d events", len(seen))
	}
	for i, s := range seen {
		if s != Sequence(i+1) {
			t.Fatalf("OnCommit saw sequence %d at place %d", s, i)
		}
	}
	if commits > len(seen)/2 {
		t.Errorf("%d commits for %d events: they are not grouped", commits, len(seen))
	}
}

// TestAbandonedAppend: a caller that stops waiting breaks nothing for others,
// also when the lead was just handed to it.
func TestAbandonedAppend(t *testing.T) {
	j := openNew(t, Options{})
	var stored, left atomic.Int64
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((w*i)%7)*100*time.Microsecond)
				_, err := j.Append(ctx, set(types.UID(fmt.Sprint(w)), fmt.Sprint(i)))
				cancel()
				switch {
				case err == nil:
					stored.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustAppend(t, j, set("last", "1"))
	got := int64(len(all(t, j))) - 2
	if got < stored.Load() || got > stored.Load()+left.Load() {
		t.Errorf("%d events, %d accepted, %d abandoned", got, stored.Load(), left.Load())
	}
}

func TestCloseIsIdempotentAndFinal(t *testing.T) {
	j := openNew(t, Options{})
	_, changed := j.Head()
	if err := errors.Join(j.Close(), j.Close()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("Close does not wake those who wait for the head")
	}
	if _, err := j.Append(t.Context(), set("a", "1")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	for _, err := range j.Events(1, 0) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Events after Close: %v", err)
		}
	}
}

func TestCloseDuringAppends(t *testing.T) {
	j := openNew(t, Options{})
	var accepted atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				if _, err := j.Append(t.Context(), set(types.UID(fmt.Sprint(w)), fmt.Sprint(i))); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				accepted.Add(1)
			}
		})
	}
	for accepted.Load() < 50 {
		time.Sleep(time.Millisecond)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	j = open(t, j.path, Options{})
	if got := int64(len(all(t, j))) - 2; got != accepted.Load() {
		t.Errorf("%d events, %d accepted", got, accepted.Load())
	}
	if !j.WasClean() {
		t.Error("an orderly close is not noted")
	}
}

func TestHeadIsWatchable(t *testing.T) {
	j := openNew(t, Options{})
	head, changed := j.Head()
	got := mustAppend(t, j, set("a", "1"))[0]
	select {
	case <-changed:
	default:
		t.Error("the head moved without closing the channel")
	}
	if now, _ := j.Head(); now != got.Sequence || now != head+1 {
		t.Errorf("head %d after event %d", now, got.Sequence)
	}
}
