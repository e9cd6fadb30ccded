// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// history yields events, with an error in the place of those without a kind.
func history(events ...journal.Event) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			var err error
			if e.Kind == 0 {
				err = &journal.CorruptError{Path: "j", Sequence: e.Sequence, Kind: journal.ErrCorrupt}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func garbled(e journal.Event) journal.Event {
	e.Status = []byte{0xff}
	return e
}

// messages says "uid:message" for each entry.
func messages(entries []*Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, string(e.UID)+":"+e.Status.Message)
	}
	return out
}

func wantMessages(t *testing.T, entries []*Entry, want ...string) {
	t.Helper()
	if got := messages(entries); !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}

func TestState_Apply(t *testing.T) {
	s := NewState()
	opened := event(journal.KindOpened, "", 1, 0, "")
	opened.Epoch = 2
	future := event(journal.Kind(200), "a", 4, 9, "")
	for _, e := range []journal.Event{
		opened, set("b", 2, 1, "b1"), set("a", 3, 1, "a1"), future,
		event(journal.KindRejected, "a", 5, 1, ""), set("a", 8, 2, "a2"), event(journal.KindRemoved, "b", 9, 2, ""), set("c", 10, 1, "c1"),
	} {
		if err := s.Apply(e); err != nil {
			t.Errorf("apply %d: %v", e.Sequence, err)
		}
	}
	wantMessages(t, s.Entries(), "a:a2", "c:c1")
	if s.Head() != 10 || s.Len() != 2 {
		t.Errorf("head %d, %d pods; want 10, 2", s.Head(), s.Len())
	}
	if err := s.Apply(set("a", 10, 3, "again")); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("sequence again: error %v, want %v", err, ErrOutOfOrder)
	}
	if err := s.Apply(garbled(set("a", 11, 3, ""))); !errors.Is(err, podstatus.ErrMalformed) {
		t.Errorf("garbled: error %v, want %v", err, podstatus.ErrMalformed)
	}
	wantMessages(t, s.Entries(), "a:a2", "c:c1")
	if s.Head() != 11 {
		t.Errorf("head %d, want 11: a damaged event has its place", s.Head())
	}
	s.ApplyAck(journal.Ack{UID: "nobody", LiveUID: "nobody", Version: 1})
	s.ApplyAck(journal.Ack{UID: "a", LiveUID: "a", Version: 1})
	if got, want := s.Counts(), (Counts{Pods: 2, Pending: 2, AckedVersionsBehind: 2}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestAt(t *testing.T) {
	damaged := journal.Event{Sequence: 5, UID: ""}
	events := history(
		set("a", 1, 1, "a1"), set("b", 2, 1, "b1"), set("a", 3, 2, "a2"), event(journal.KindRemoved, "b", 4, 2, ""),
		damaged, set("c", 6, 1, "c1"), set("a", 7, 3, "a3"),
	)
	tests := []struct {
		name    string
		point   Point
		want    []string
		head    journal.Sequence
		damaged bool
	}{
		{"first", Point{Sequence: 1}, []string{"a:a1"}, 1, false},
		{"before the removal", Point{Sequence: 3}, []string{"a:a2", "b:b1"}, 3, false},
		{"after the removal", Point{Sequence: 4}, []string{"a:a2"}, 4, false},
		{"behind the damage", Point{Sequence: 6}, []string{"a:a2", "c:c1"}, 6, true},
		{"end", Point{}, []string{"a:a3", "c:c1"}, 7, true},
		{"beyond the end", Point{Sequence: 99}, []string{"a:a3", "c:c1"}, 7, true},
		{"time of an event", Point{Time: at(3)}, []string{"a:a2", "b:b1"}, 3, false},
		{"before all", Point{Time: at(0)}, nil, 0, false},
		{"both", Point{Sequence: 6, Time: at(2)}, []string{"a:a1", "b:b1"}, 2, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := At(events, tt.point)
			if got := errors.Is(err, journal.ErrCorrupt); got != tt.damaged {
				t.Errorf("error %v; damage %v, want %v", err, got, tt.damaged)
			}
			wantMessages(t, s.Entries(), tt.want...)
			if s.Head() != tt.head {
				t.Errorf("head %d, want %d", s.Head(), tt.head)
			}
		})
	}
}

func TestAt_DecodesOnlyWhatCounts(t *testing.T) {
	s, err := At(history(garbled(set("a", 1, 1, "")), set("a", 2, 2, "a2")), Point{})
	if err != nil {
		t.Errorf("error %v about a status that was replaced", err)
	}
	wantMessages(t, s.Entries(), "a:a2")
	s, err = At(history(set("b", 1, 1, "b1"), garbled(set("a", 2, 2, ""))), Point{})
	if e, ok := errors.AsType[*EventError](err); !ok || e.Sequence != 2 {
		t.Errorf("error %v, want an EventError about 2", err)
	}
	wantMessages(t, s.Entries(), "b:b1")
}

func TestState_ByNameAfterRecreation(t *testing.T) {
	p := New()
	first, second := set("a", 1, 1, "first"), set("b", 2, 1, "second")
	second.Name = first.Name
	p.Commit([]journal.Event{first, second})
	wantMessages(t, p.ByName("default", first.Name), "b:second", "a:first")
	p.Commit([]journal.Event{event(journal.KindRemoved, "b", 3, 2, "")})
	wantMessages(t, p.ByName("default", first.Name), "a:first")
	moved := set("a", 4, 2, "moved")
	moved.Name = "elsewhere"
	p.Commit([]journal.Event{moved})
	wantMessages(t, p.ByName("default", first.Name))
	wantMessages(t, p.ByName("default", "elsewhere"), "a:moved")
	if _, ok := p.state.table.names[types.NamespacedName{Namespace: "default", Name: first.Name}]; ok {
		t.Error("the index keeps a name that nobody has")
	}
}
