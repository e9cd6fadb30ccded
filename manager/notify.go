// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// Hooks are told what happens, after it is durable and, but for Committed, with no
// lock held. Each may be nil. They run on the goroutines of calls and may call the
// manager; a slow hook delays callers.
type Hooks struct {
	// Notify gets each new version of a pod's status, in the order of versions
	// (SEMANTICS 56), one call at a time; resize slots alone are no news. Versions that come faster than Notify returns are
	// told as one, the newest, with Added kept.
	Notify func(Notification)
	// ContainerTerminated gets each container that ended, once (SEMANTICS 53).
	// Replay of the journal tells nothing again.
	ContainerTerminated func(types.UID, podstatus.Termination)
	// Committed gets how many events each commit made durable. All writers wait for
	// it, so it must return at once and must not call the manager.
	Committed func(events int)
	// Rejected gets each refused update (SEMANTICS 55), repetitions included.
	Rejected func(*podstatus.TransitionError)
	// ResizeEnded gets how long a pod's deferred resize has waited (SEMANTICS 33).
	ResizeEnded func(types.UID, ResizeOutcome, time.Duration)
}

// NotificationKind says what became of a pod.
type NotificationKind string

// The kinds of notifications.
const (
	// NotifyUpdated: a new version of a pod that is not finished.
	NotifyUpdated NotificationKind = "updated"
	// NotifyRemoved: a new version of a finished pod.
	NotifyRemoved NotificationKind = "removed"
)

// Notification is a new version of a pod.
type Notification struct {
	Kind NotificationKind
	// Added is set for the first version of a pod that is not being deleted.
	Added     bool
	UID       types.UID
	Namespace string
	Name      string
	Version   journal.Version

	status *v1.PodStatus
}

// Status returns the version's status, at each call a copy of the caller's own.
func (n Notification) Status() *v1.PodStatus { return n.status.DeepCopy() }

// notifier delivers notifications in order without a goroutine and without a lock
// held: who finds nobody delivering delivers all that is queued.
type notifier struct {
	deliver func(Notification)

	// mu guards the fields below. What is queued is bounded by two per pod.
	mu         sync.Mutex
	queue      []*Notification
	last       map[types.UID]*Notification // the newest in queue, per pod
	delivering bool
}

// enqueue is called with the pod's lock held, which keeps versions in order.
func (n *notifier) enqueue(next Notification) {
	if n.deliver == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if waiting := n.last[next.UID]; waiting != nil && waiting.Kind == next.Kind {
		next.Added = next.Added || waiting.Added
		*waiting = next
		return
	}
	if n.last == nil {
		n.last = make(map[types.UID]*Notification)
	}
	n.queue = append(n.queue, &next)
	n.last[next.UID] = &next
}

// drain delivers what is queued, unless another call is at it.
func (n *notifier) drain() {
	if n.deliver == nil {
		return
	}
	first := true
	for {
		next, ok := n.take(first)
		if !ok {
			return
		}
		first = false
		n.deliverOne(next)
	}
}

// deliverOne lets others go on delivering after a hook that panics.
func (n *notifier) deliverOne(next Notification) {
	returned := false
	defer func() {
		if !returned {
			n.mu.Lock()
			n.delivering = false
			n.mu.Unlock()
		}
	}()
	n.deliver(next)
	returned = true
}

func (n *notifier) take(first bool) (Notification, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if first && n.delivering {
		return Notification{}, false
	}
	if len(n.queue) == 0 {
		n.delivering, n.queue = false, nil
		return Notification{}, false
	}
	n.delivering = true
	next := n.queue[0]
	n.queue = n.queue[1:]
	if n.last[next.UID] == next {
		delete(n.last, next.UID)
	}
	return *next, true
}
