// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/journal"
)

// fakeJournal is a list of events; those below the horizon were trimmed.
type fakeJournal struct {
	mu      sync.Mutex
	events  []journal.Event
	horizon int
	reads   int
	err     error
}

func (j *fakeJournal) Head() (journal.Sequence, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return journal.Sequence(len(j.events)), make(chan struct{})
}

func (j *fakeJournal) head() journal.Sequence { head, _ := j.Head(); return head }

func (j *fakeJournal) Events(from, to journal.Sequence) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.err != nil {
			yield(journal.Event{}, j.err)
			return
		}
		for _, e := range j.events[max(int(from)-1, j.horizon):to] {
			j.reads++
			if !yield(e, nil) {
				return
			}
		}
	}
}

// add appends "uid" (a status), "+uid" (the first one), "-uid" (the removal) or "."
// (an event that no watch shows).
func (j *fakeJournal) add(words string) {
	for _, w := range strings.Fields(words) {
		e := journal.Event{Sequence: journal.Sequence(len(j.events) + 1), Kind: journal.KindSet, UID: types.UID(w)}
		switch {
		case w == ".":
			e = journal.Event{Sequence: e.Sequence, Kind: journal.KindRejected}
		case w[0] == '+':
			e.UID, e.First = types.UID(w[1:]), true
		case w[0] == '-':
			e.UID, e.Kind = types.UID(w[1:]), journal.KindRemoved
		}
		j.events = append(j.events, e)
	}
}

// joined is what the first watch begins.
func joined(j *fakeJournal) *recentEvents {
	l := new(recentEvents)
	l.reset(j.head())
	return l
}

// told is what a watch at the cursor gets.
func told(t *testing.T, l *recentEvents, j *fakeJournal, cursor journal.Sequence) (events string, published journal.Sequence) {
	t.Helper()
	got, published, ok := l.after(j, cursor, j.head())
	if !ok {
		return "replay", 0
	}
	var b strings.Builder
	for _, e := range got {
		sign := ""
		if e.First {
			sign = "+"
		} else if e.Kind == journal.KindRemoved {
			sign = "-"
		}
		fmt.Fprintf(&b, "%d%s%s ", e.Sequence, sign, e.UID)
	}
	return strings.TrimSpace(b.String()), published
}

// TestRecentEvents_Merge: a status that another one of its pod followed is left
// out; the first one, a removal, and the last status before it are not.
func TestRecentEvents_Merge(t *testing.T) {
	tests := []struct{ name, events, want string }{
		{"one pod", "a a a", "3a"},
		{"two pods", "a b a . b", "3a 5b"},
		{"the first", "+a a a", "1+a 3a"},
		{"only the first", "+a", "1+a"},
		{"removal", "a a -a", "2a 3-a"},
		{"back again", "a -a +a a a", "1a 2-a 3+a 5a"},
		{"a new incarnation", "a a +a a a", "2a 3+a 5a"},
		{"nothing to show", ". .", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := new(fakeJournal)
			l := joined(j)
			j.add(tt.events)
			if got, published := told(t, l, j, 0); got != tt.want || published != j.head() {
				t.Errorf("got %q up to %d, want %q up to %d", got, published, tt.want, j.head())
			}
		})
	}
}

// TestRecentEvents_Published: watches that are behind all get the same, until one
// has seen it.
func TestRecentEvents_Published(t *testing.T) {
	j := new(fakeJournal)
	l := joined(j)
	wants := func(cursor journal.Sequence, want string, wantPublished journal.Sequence) {
		t.Helper()
		if got, published := told(t, l, j, cursor); got != want || published != wantPublished {
			t.Errorf("at %d: got %q up to %d, want %q up to %d", cursor, got, published, want, wantPublished)
		}
	}
	j.add("a b a")
	wants(0, "2b 3a", 3)
	j.add("a a b")
	wants(0, "2b 3a", 3)
	wants(2, "3a", 3)
	wants(3, "5a 6b", 6)
	wants(0, "5a 6b", 6)
	wants(5, "6b", 6)
}

// TestRecentEvents_Replay: who needs what is not there reads the journal.
func TestRecentEvents_Replay(t *testing.T) {
	j := new(fakeJournal)
	j.add("a b c")
	l := joined(j)
	j.add("a")
	wants := func(why string, cursor journal.Sequence, want string) {
		t.Helper()
		if got, _ := told(t, l, j, cursor); got != want {
			t.Errorf("%s: at %d got %q, want %q", why, cursor, got, want)
		}
	}
	wants("from before the first watch", 2, "replay")
	wants("from then on", 3, "4a")
	j.add("b c a")
	j.horizon = 5
	wants("trimmed before it was read", 4, "replay")
	wants("from there on", 5, "6c 7a")
	j.add("b")
	j.err = errors.New("the disk fails")
	wants("what can't be read", 7, "replay")
	j.err = nil
	wants("once it can be", 7, "8b")
	for i := range recentCount + 10 {
		j.add(fmt.Sprint("+p", i))
	}
	told(t, l, j, j.head()-1)
	if n := len(l.nodes); n != recentCount {
		t.Errorf("%d events are kept, want %d", n, recentCount)
	}
	wants("pushed out", 8, "replay")
	wants("just not", j.head()-1, fmt.Sprintf("%d+p%d", j.head(), recentCount+9))
	for range 3 {
		j.add("+large")
		j.events[len(j.events)-1].Status = make([]byte, recentBytes/2)
	}
	told(t, l, j, j.head()-1)
	if l.bytes > recentBytes || len(l.nodes) != 2 {
		t.Errorf("%d events with %d bytes are kept, want 2", len(l.nodes), l.bytes)
	}
}

// TestRecentEvents_Join reads while there is a watch, and forgets after the last.
func TestRecentEvents_Join(t *testing.T) {
	s := newStore(t)
	l := new(recentEvents)
	leave := l.join(s.manager.Journal())
	leaveToo := l.join(s.manager.Journal())
	read := func() journal.Sequence { l.mu.Lock(); defer l.mu.Unlock(); return l.read }
	leave()
	s.mustSet(newPod("web-0", "uid-a"))
	eventually(t, 5e9, func() bool { return read() == s.head() })
	leaveToo()
	if l.nodes != nil || l.newest != nil {
		t.Errorf("%d events are kept without a watch", len(l.nodes))
	}
	defer l.join(s.manager.Journal())()
	if read() != s.head() {
		t.Errorf("begins at %d, want %d", read(), s.head())
	}
}

// TestRecentEvents_Model: whatever happens, who applies what he is told knows what
// who applies everything knows, sees every first status and removal, and nothing
// twice. Each event is read once.
func TestRecentEvents_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := new(fakeJournal)
		l := joined(j)
		type client struct {
			cursor journal.Sequence
			pods   map[types.UID]journal.Sequence
			marks  []journal.Sequence
		}
		apply := func(c *client, e *journal.Event) {
			if e.Sequence <= c.cursor {
				t.Fatalf("event %d after %d", e.Sequence, c.cursor)
			}
			c.cursor = e.Sequence
			if e.Kind == journal.KindRemoved {
				delete(c.pods, e.UID)
			} else if e.Kind == journal.KindSet {
				c.pods[e.UID] = e.Sequence
			}
			if e.Kind == journal.KindRemoved || e.First {
				c.marks = append(c.marks, e.Sequence)
			}
		}
		newClient := func() *client { return &client{pods: map[types.UID]journal.Sequence{}} }
		clients := []*client{newClient(), newClient(), newClient()}
		alive := map[string]bool{}
		ask := func(c *client) {
			if c.cursor >= j.head() {
				return
			}
			events, published, ok := l.after(j, c.cursor, j.head())
			if !ok || published <= c.cursor {
				t.Fatalf("at %d: told up to %d, %v", c.cursor, published, ok)
			}
			for _, e := range events {
				apply(c, e.Event)
			}
			c.cursor = published
			want := newClient()
			for i := range j.events[:published] {
				apply(want, &j.events[i])
			}
			if diff := cmp.Diff(want.pods, c.pods); diff != "" {
				t.Fatalf("at %d (-want +got):\n%s", published, diff)
			}
			if !slices.Equal(c.marks, want.marks) {
				t.Fatalf("at %d: got %v, want %v", published, c.marks, want.marks)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			uid := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "uid")
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case step < 5 && alive[uid]:
				j.add(uid)
			case step < 6 && alive[uid]:
				j.add("-" + uid)
				alive[uid] = false
			case step < 6:
				j.add("+" + uid)
				alive[uid] = true
			case step < 7:
				j.add(".")
			default:
				ask(clients[step-7])
			}
		}
		for _, c := range clients {
			for c.cursor < j.head() {
				ask(c)
			}
		}
		if len(j.events) > 0 && j.reads != len(j.events) {
			t.Fatalf("%d events were read %d times", len(j.events), j.reads)
		}
	})
}

// TestSharedEvent is computed once for all.
func TestSharedEvent(t *testing.T) {
	j := new(fakeJournal)
	l := joined(j)
	for i := range recentShared + 1 {
		j.add(fmt.Sprint("+p", i))
	}
	all, _, _ := l.after(j, 0, j.head())
	var pods, lines atomic.Int64
	look := func(e *sharedEvent, size int) {
		if seen, err := e.podOr(func() (*v1.Pod, error) { pods.Add(1); return &v1.Pod{}, nil }); err != nil || seen.status == nil {
			t.Errorf("got %+v, %v", seen, err)
		}
		line, err := e.lineOr(sharedForm{watch.Modified, formatJSON}, func() ([]byte, error) {
			lines.Add(1)
			return bytes.Repeat([]byte{'x'}, size), nil
		})
		if err != nil || len(line) != size {
			t.Errorf("got %d bytes, %v, want %d", len(line), err, size)
		}
	}
	wants := func(what string, wantPods, wantLines int64) {
		t.Helper()
		if gotPods, gotLines := pods.Swap(0), lines.Swap(0); gotPods != wantPods || gotLines != wantLines {
			t.Errorf("%s: made %d pods and %d lines, want %d and %d", what, gotPods, gotLines, wantPods, wantLines)
		}
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			newest, _, _ := l.after(j, j.head()-1, j.head())
			look(newest[0].shared, 10)
		})
	}
	group.Wait()
	wants("the newest, for 100", 1, 1)
	look(all[1].shared, sharedLineBytes+1)
	look(all[1].shared, sharedLineBytes+1)
	wants("a large one, for 2", 1, 2)
	if again, _, _ := l.after(j, 0, j.head()); again[0].shared == all[0].shared || len(l.computed) > recentShared {
		t.Errorf("the computed forms of %d events are kept, want %d", len(l.computed), recentShared)
	}
	fails := errors.New("no")
	e := new(sharedEvent)
	if _, err := e.lineOr(sharedForm{}, func() ([]byte, error) { return nil, fails }); !errors.Is(err, fails) {
		t.Errorf("got %v, want %v", err, fails)
	}
	if _, err := e.podOr(func() (*v1.Pod, error) { return nil, fails }); !errors.Is(err, fails) {
		t.Errorf("got %v, want %v", err, fails)
	}
}
