// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// State is what a range of events folds to. Use it to replay; readers of a
// running store use a Projection. Not for concurrent use.
type State struct {
	table table
	head  journal.Sequence
	epoch journal.Epoch
}

// NewState returns the state before the first event.
func NewState() *State { return &State{table: newTable()} }

// Apply folds one event. Events come in the order of their sequences; gaps, as
// trimming leaves them, are allowed. An error is an *EventError; the event then
// changed nothing but the head.
func (s *State) Apply(e journal.Event) error {
	if e.Sequence <= s.head {
		return eventError(e, fmt.Errorf("sequence %d after %d: %w", e.Sequence, s.head, ErrOutOfOrder))
	}
	s.head, s.epoch = e.Sequence, e.Epoch
	return s.applyToPod(e)
}

func (s *State) applyToPod(e journal.Event) error {
	if !changesPod(e.Kind) {
		return nil
	}
	prev := s.table.entries[e.UID]
	next, err := fold(prev, e)
	if err == nil {
		s.table.replace(prev, next)
	}
	return err
}

// ApplyAck folds an ack. One of a UID without entry is ignored.
func (s *State) ApplyAck(a journal.Ack) {
	if prev, ok := s.table.entries[a.UID]; ok {
		s.table.replace(prev, foldAck(prev, a))
	}
}

// load folds events of which each is its pod's newest, in any order. It returns
// all errors joined, those of the iterator included.
func (s *State) load(newest iter.Seq2[journal.Event, error]) error {
	var errs []error
	for e, err := range newest {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.head, s.epoch = max(s.head, e.Sequence), max(s.epoch, e.Epoch)
		if prev := s.table.entries[e.UID]; prev != nil && prev.Sequence >= e.Sequence {
			continue // a commit since has told the newer story
		}
		if err := s.applyToPod(e); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Head is the sequence of the last event that was applied; 0 at first.
func (s *State) Head() journal.Sequence { return s.head }

// Epoch is that of the last event that was applied.
func (s *State) Epoch() journal.Epoch { return s.epoch }

// Len is the number of pods.
func (s *State) Len() int { return len(s.table.entries) }

// Get returns a pod's entry.
func (s *State) Get(uid types.UID) (*Entry, bool) {
	e, ok := s.table.entries[uid]
	return e, ok
}

// Entries returns all pods by namespace, name and UID.
func (s *State) Entries() []*Entry { return s.table.list() }

// Counts returns the totals.
func (s *State) Counts() Counts { return s.table.counts }

// Point is a place in the history: up to and including a sequence, or a time.
// With both, what comes first ends it; the zero Point is the end of the history.
type Point struct {
	Sequence journal.Sequence
	// Time ends the history before the first event that is later. Should the
	// clock have gone back later on, events behind that one do not count.
	Time time.Time
}

func (p Point) before(e journal.Event) bool {
	return p.Sequence != 0 && e.Sequence > p.Sequence || !p.Time.IsZero() && e.Time.After(p.Time)
}

// At returns the state at a point of the history that events tells in order. Only
// each pod's last status is decoded. The error joins what the iterator and the
// fold report; the state has everything else. Acks have no history: none is in it.
//
// What was trimmed is missing: a pod whose events up to the point are all gone is
// not in the state.
func At(events iter.Seq2[journal.Event, error], p Point) (*State, error) {
	var errs []error
	newest := make(map[types.UID]journal.Event)
	s := NewState()
	for e, err := range events {
		if p.before(e) {
			break
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.head, s.epoch = max(s.head, e.Sequence), max(s.epoch, e.Epoch)
		if !changesPod(e.Kind) {
			continue
		}
		if prev, ok := newest[e.UID]; ok && e.Version <= prev.Version {
			errs = append(errs, eventError(e, fmt.Errorf("version %d after %d: %w", e.Version, prev.Version, ErrOutOfOrder)))
			continue
		}
		newest[e.UID] = e
	}
	errs = append(errs, s.load(func(yield func(journal.Event, error) bool) {
		for _, e := range newest {
			if !yield(e, nil) {
				return
			}
		}
	}))
	return s, errors.Join(errs...)
}
