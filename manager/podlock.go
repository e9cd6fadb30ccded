// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podLocks has one lock per pod. A pod's lock is held from reading its entry to
// the commit of what follows from it, so each pod's versions are computed in
// order while different pods share commits. Locks exist only while somebody has
// or wants them.
type podLocks struct {
	// mu guards locks and their references.
	mu    sync.Mutex
	locks map[types.UID]*podLock
}

type podLock struct {
	held       chan struct{} // capacity 1: full while held. Waiters are served in order.
	references int
}

func newPodLocks() *podLocks { return &podLocks{locks: make(map[types.UID]*podLock)} }

// lock waits for the pod's lock. The error is the context's. Who holds several
// locks must have taken them in ascending order of UIDs.
func (l *podLocks) lock(ctx context.Context, uid types.UID) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	p, ok := l.locks[uid]
	if !ok {
		p = &podLock{held: make(chan struct{}, 1)}
		l.locks[uid] = p
	}
	p.references++
	l.mu.Unlock()

	select {
	case p.held <- struct{}{}:
		return nil
	default:
	}
	select {
	case p.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.release(uid)
		return context.Cause(ctx)
	}
}

func (l *podLocks) unlock(uid types.UID) {
	l.mu.Lock()
	p := l.locks[uid]
	l.mu.Unlock()
	<-p.held
	l.release(uid)
}

func (l *podLocks) release(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.locks[uid]
	if p.references--; p.references == 0 {
		delete(l.locks, uid)
	}
}
