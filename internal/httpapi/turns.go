// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"sync"
	"time"
)

const (
	// turnShare is how many times the time that a turn takes passes before the next
	// one, on average: all watches together use a quarter of one processor, or of
	// what there is of it for this process, and the rest is for those who write.
	turnShare = 4
	// turnLeast is what a turn counts at least, turnMost what it counts at most: it
	// may be waiting for its client.
	turnLeast = 100 * time.Microsecond
	turnMost  = 50 * time.Millisecond
	// turnBurst is how much may be used at once after a rest: with few watches, or
	// few events, nobody waits.
	turnBurst = 10 * time.Millisecond
)

// turns lets watches send one after the other, at a bounded rate. A watch that is
// stuck in sending holds up nobody. The longer a watch waits, the more it merges,
// so the wait grows with the number of watches and not with that of events.
type turns struct {
	queue chan struct{} // holds a value while somebody waits for the time

	mu    sync.Mutex
	free  time.Time     // guarded by mu; when all that was used is paid for
	usual time.Duration // guarded by mu; what a turn costs on average
}

// turn is one that was begun.
type turn struct {
	begun time.Time
	paid  time.Duration
}

func newTurns() *turns { return &turns{queue: make(chan struct{}, 1), usual: turnLeast} }

// wait begins a turn, when there is one; false if the context ends before.
func (t *turns) wait(ctx context.Context) (turn, bool) {
	select {
	case t.queue <- struct{}{}:
	case <-ctx.Done():
		return turn{}, false
	}
	defer func() { <-t.queue }()
	for {
		begun, rest := t.take()
		if rest <= 0 {
			return begun, true
		}
		if !pause(rest, ctx.Done()) {
			return turn{}, false
		}
	}
}

// take begins a turn, or returns for how long there is none. It is paid for at the
// usual price: a thousand may be in line before one of them is done.
func (t *turns) take() (turn, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.free.Before(now) {
		t.free = now
	}
	if rest := t.free.Sub(now) - turnBurst; rest > 0 {
		return turn{}, rest
	}
	t.free = t.free.Add(t.usual)
	return turn{now, t.usual}, 0
}

// done ends a turn and settles its price.
func (t *turns) done(d turn) {
	price := min(max(turnShare*time.Since(d.begun), turnLeast), turnMost)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = t.free.Add(price - d.paid)
	t.usual += (price - t.usual) / 8
}
