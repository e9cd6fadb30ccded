// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// slack is how many UIDs more than there are pods a watcher may have waiting.
const slack = 1024

// Watcher tells which pods changed. Changes coalesce: a UID waits once, however
// often its pod changed, and what waits is bounded by the number of pods. A
// watcher learns that it should look again, never what it missed.
type Watcher struct {
	// C wakes up: it has a value when UIDs wait. Capacity 1, never closed.
	C <-chan struct{}

	p    *Projection
	wake chan struct{}

	// mu guards uids. It is taken with or without Projection.mu held, never before
	// it.
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

// Watch returns a watcher for the changes from now on. Call Stop when done.
func (p *Projection) Watch() *Watcher {
	wake := make(chan struct{}, 1)
	w := &Watcher{C: wake, p: p, wake: wake, uids: make(map[types.UID]struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers[w] = struct{}{}
	return w
}

// Take returns the UIDs of pods that changed since the last Take, in no order; nil
// if there are none. A pod that is gone was removed. Removals may be missing if
// the watcher fell behind by more UIDs than there are pods.
func (w *Watcher) Take() []types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.uids) == 0 {
		return nil
	}
	taken := make([]types.UID, 0, len(w.uids))
	for uid := range w.uids {
		taken = append(taken, uid)
	}
	// A new map, not clear: a map that was large once stays slow to range over.
	w.uids = make(map[types.UID]struct{})
	return taken
}

// Stop ends the watch. It may be called twice.
func (w *Watcher) Stop() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	delete(w.p.watchers, w)
}

// announce tells the watchers of an event. p.mu is held.
func (p *Projection) announce(e journal.Event) {
	if !changesPod(e.Kind) {
		return
	}
	for w := range p.watchers {
		w.add(e.UID, p.state.table.entries)
	}
}

func (w *Watcher) add(uid types.UID, entries map[types.UID]*Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.uids[uid] = struct{}{}
	if len(w.uids) > 2*len(entries)+slack {
		for waiting := range w.uids {
			if _, ok := entries[waiting]; !ok && waiting != uid {
				delete(w.uids, waiting)
			}
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
