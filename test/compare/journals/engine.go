// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"runtime"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// event is what a writer wants to be durable.
type event struct {
	uid    types.UID
	status []byte // Kubernetes protobuf
}

// ack is what the API server is known to hold. It is durable with the next commit.
type ack struct {
	uid      types.UID
	sequence uint64
}

// engine makes events durable. Both methods are called by many goroutines.
type engine interface {
	// append returns when the event is durable, and notes its ack for a later commit.
	append(event) error
	close() error
}

// committer stores a batch in one synced commit; one call at a time.
type committer interface {
	commit(first uint64, batch []event, acks []ack) error
	close() error
}

// retained is how many events engines with retention keep: what the journal keeps
// of 500 pods. trimAt is the excess that starts a deletion.
const (
	retained = 20_000
	trimAt   = 256
)

// gatherPasses is how often a leader lets others run before it takes what is queued.
const gatherPasses = 3

// grouped gives a committer the group commit that the journal has: who finds no
// commit in flight leads, lets the others queue, and commits for all of them.
type grouped struct {
	to committer

	mu      sync.Mutex // guards the fields below
	waiting []*waiter
	leading bool
	next    uint64 // sequence of the next event
	acks    map[types.UID]uint64
}

type waiter struct {
	event event
	err   error
	wake  chan bool // true: lead; false: err is set
}

func newGrouped(to committer) *grouped {
	return &grouped{to: to, next: 1, acks: make(map[types.UID]uint64)}
}

func (g *grouped) append(e event) error {
	w := &waiter{event: e, wake: make(chan bool, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	lead := !g.leading
	g.leading = true
	g.mu.Unlock()
	if !lead && !<-w.wake {
		return w.err
	}
	g.lead()
	return w.err
}

// lead commits one batch, the leader's own event among it, and passes the lead on.
func (g *grouped) lead() {
	batch := g.gather()
	g.mu.Lock()
	first := g.next
	acks := make([]ack, 0, len(g.acks))
	for uid, sequence := range g.acks {
		acks = append(acks, ack{uid, sequence})
	}
	clear(g.acks)
	g.mu.Unlock()
	events := make([]event, len(batch))
	for i, w := range batch {
		events[i] = w.event
	}
	err := g.to.commit(first, events, acks)
	g.mu.Lock()
	if err == nil {
		for i, w := range batch {
			g.acks[w.event.uid] = first + uint64(i)
		}
		g.next += uint64(len(batch))
	}
	if g.leading = len(g.waiting) > 0; g.leading {
		g.waiting[0].wake <- true
	}
	g.mu.Unlock()
	for _, w := range batch {
		w.err = err
		w.wake <- false // the leader's own is left in its buffer
	}
}

func (g *grouped) gather() []*waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range gatherPasses {
		n := len(g.waiting)
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		if len(g.waiting) == n {
			break
		}
	}
	batch := g.waiting
	g.waiting = nil
	return batch
}

func (g *grouped) close() error { return g.to.close() }
