// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Projection is the live state: fed by the journal's commits, read by everybody.
// Its methods may be called concurrently; see the package comment.
type Projection struct {
	// mu guards the fields below. It is held for map operations only: statuses
	// are decoded before it is taken.
	mu       sync.RWMutex
	state    *State
	watchers map[*Watcher]struct{}
	err      error // of the first commit that could not be folded in full
}

// New returns an empty projection.
func New() *Projection {
	return &Projection{state: NewState(), watchers: make(map[*Watcher]struct{})}
}

// Load takes each pod's newest event (journal.Journal.Newest) and the acks. The
// error joins what could not be read or folded; everything else is loaded. Events
// that were committed meanwhile win.
func (p *Projection) Load(newest iter.Seq2[journal.Event, error], acks map[types.UID]journal.Ack) error {
	var errs []error
	// Read and decode first: the iterator reads the disk, and no reader waits for it.
	var events []journal.Event
	for e, err := range newest {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		events = append(events, e)
	}
	events = decodeAll(events)

	p.mu.Lock()
	defer p.mu.Unlock()
	errs = append(errs, p.state.load(func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}))
	for _, a := range acks {
		p.state.ApplyAck(a)
	}
	for _, e := range events {
		p.announce(e)
	}
	return errors.Join(errs...)
}

// Commit folds events that just became durable, in order. It is meant to be
// journal.Options.OnCommit. A Payload of type *v1.PodStatus is taken as the
// decoded status and becomes immutable. What cannot be folded is kept for Err.
func (p *Projection) Commit(events []journal.Event) {
	events = decodeAll(events)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		if err := p.state.Apply(e); err != nil {
			if p.err == nil {
				p.err = err
			}
			continue
		}
		p.announce(e)
	}
}

// Err is nil as long as every commit could be folded; else the first *EventError.
// The projection is then behind the journal until the next open.
func (p *Projection) Err() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.err
}

// decodeAll puts decoded statuses into the events' payloads where they are
// missing. Events that cannot be decoded stay as they are: the fold reports them.
func decodeAll(events []journal.Event) []journal.Event {
	copied := false
	for i, e := range events {
		if e.Payload != nil || e.Kind == journal.KindRemoved || !changesPod(e.Kind) {
			continue
		}
		status, err := decodeStatus(e)
		if err != nil {
			continue
		}
		if !copied {
			events, copied = slices.Clone(events), true
		}
		events[i].Payload = status
	}
	return events
}

// Get returns a pod's entry.
func (p *Projection) Get(uid types.UID) (*Entry, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state.Get(uid)
}

// ByName returns the entries of a name, the one with the newest event first. More
// than one UID has the name after a pod was recreated under it.
func (p *Projection) ByName(namespace, name string) []*Entry {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state.table.byName(types.NamespacedName{Namespace: namespace, Name: name})
}

// List returns all entries by namespace, name and UID.
func (p *Projection) List() []*Entry {
	p.mu.RLock()
	all := slices.Collect(maps.Values(p.state.table.entries))
	p.mu.RUnlock()
	return sorted(all)
}

// Len is the number of pods.
func (p *Projection) Len() int { return p.Counts().Pods }

// Counts returns the totals.
func (p *Projection) Counts() Counts {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state.Counts()
}

// Head is the sequence of the last event that was folded.
func (p *Projection) Head() journal.Sequence {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.state.Head()
}

// SetAck records that the server holds a version. It never lowers the acked
// version for the same live object and never raises it above the version. An ack
// of a UID without entry is ignored.
func (p *Projection) SetAck(a journal.Ack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.ApplyAck(a)
}

// ClearAck forgets an ack: the server is known to differ.
func (p *Projection) ClearAck(uid types.UID) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if prev, ok := p.state.Get(uid); ok {
		p.state.table.replace(prev, foldNoAck(prev, now))
	}
}
