// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

const (
	// recentCount and recentBytes bound what is kept of the newest events. A watch
	// that is further behind reads the journal.
	recentCount = 16 << 10
	recentBytes = 16 << 20
	// recentShared bounds of how many events the computed forms are kept.
	recentShared = 1024
	// recentPause is the least time between two looks at the journal.
	recentPause = 5 * time.Millisecond
)

// recentEvents are the newest events as watches are told of them: each is read and
// computed once for all, and a status that another one of its pod followed is left
// out. Without either, a thousand watches leave no processor to those who write.
//
// All watches see the events up to one published sequence. It moves on when a watch
// asks that has seen it, so that a thousand watches that are behind get the same
// few lines.
type recentEvents struct {
	mu     sync.Mutex
	recent // guarded by mu, as is all below

	watches int
	stop    chan struct{} // closed when the last watch has left
}

type recent struct {
	nodes     []*recentNode    // by sequence
	floor     journal.Sequence // what matters in (floor, read] is in nodes
	read      journal.Sequence
	published journal.Sequence
	newest    map[types.UID]*recentNode // the event that the pod's next status replaces
	bytes     int                       // of the statuses in nodes
	replaced  int                       // how many nodes are replaced
	computed  []*recentNode             // those with shared, oldest first
}

// recentNode is one event.
type recentNode struct {
	event    journal.Event
	replaced journal.Sequence // the event that replaced it; 0 while there is none
	shared   *sharedEvent
}

// recentEvent is one event for a watch.
type recentEvent struct {
	*journal.Event // nobody may change it
	shared         *sharedEvent
}

// eventSource is the journal.
type eventSource interface {
	Head() (journal.Sequence, <-chan struct{})
	Events(from, to journal.Sequence) iter.Seq2[journal.Event, error]
}

// join is called when a watch begins. While there is one, the journal is read as it
// grows: what waits for the turns of many watches could be trimmed before.
func (l *recentEvents) join(j eventSource) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches++
	if l.watches == 1 {
		head, _ := j.Head()
		l.reset(head)
		l.stop = make(chan struct{})
		go l.follow(j, l.stop)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watches--
		if l.watches == 0 {
			l.recent = recent{}
			close(l.stop)
		}
	}
}

// follow reads the journal until stop is closed, or the journal.
func (l *recentEvents) follow(j eventSource, stop <-chan struct{}) {
	for seen := journal.Sequence(0); ; {
		head, moved := j.Head()
		if head > seen {
			l.mu.Lock()
			select {
			case <-stop: // another one may have begun
			default:
				l.feed(j, head)
			}
			l.mu.Unlock()
			seen = head
			if !pause(recentPause, stop) {
				return
			}
			continue
		}
		select {
		case <-stop:
			return
		case <-moved:
			if now, _ := j.Head(); now == head {
				return // the journal was closed
			}
		}
	}
}

// pause reports false when it was ended.
func pause(d time.Duration, end <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

// after returns what a watch at the cursor is told next, and up to where that goes.
// It reports false if more is missing than is kept here. The watch has joined, and
// the head of the journal is beyond the cursor.
func (l *recentEvents) after(j eventSource, cursor, head journal.Sequence) ([]recentEvent, journal.Sequence, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.feed(j, head)
	if cursor >= l.published {
		l.published = l.read
		l.prune()
	}
	if cursor < l.floor || cursor >= l.published {
		return nil, 0, false
	}
	var events []recentEvent
	for _, n := range l.nodes[l.search(cursor+1):] {
		if n.event.Sequence > l.published {
			break
		}
		if !n.replacedBy(l.published) {
			events = append(events, recentEvent{&n.event, l.compute(n)})
		}
	}
	return events, l.published, true
}

// reset forgets everything up to a sequence.
func (l *recent) reset(to journal.Sequence) {
	*l = recent{floor: to, read: to, published: to, newest: make(map[types.UID]*recentNode)}
}

// feed reads up to the head, or as far as that is possible.
func (l *recent) feed(j eventSource, head journal.Sequence) {
	if l.read >= head {
		return
	}
	for e, err := range j.Events(l.read+1, head) {
		if err != nil {
			return // who needs it reads for himself, and sees the error
		}
		if e.Sequence != l.read+1 {
			l.reset(e.Sequence - 1) // trimmed
		}
		l.read = e.Sequence
		l.add(e)
	}
}

// add takes an event. The first status of a pod is never replaced, and none before
// a removal is: these tell what exists.
func (l *recent) add(e journal.Event) {
	if !shownKind(e.Kind) {
		return
	}
	n := &recentNode{event: e}
	if before := l.newest[e.UID]; before != nil && e.Kind != journal.KindRemoved && !e.First {
		before.replaced = e.Sequence
		l.replaced++
	}
	if e.Kind == journal.KindRemoved || e.First {
		delete(l.newest, e.UID)
	} else {
		l.newest[e.UID] = n
	}
	l.nodes = append(l.nodes, n)
	l.bytes += len(e.Status)
}

// prune drops what was replaced before the published sequence, and then the oldest,
// until the rest is within bounds.
func (l *recent) prune() {
	if l.replaced > len(l.nodes)/2 {
		l.nodes = slices.DeleteFunc(l.nodes, func(n *recentNode) bool {
			if !n.replacedBy(l.published) {
				return false
			}
			l.bytes -= len(n.event.Status)
			l.replaced--
			return true
		})
	}
	drop := 0
	for ; drop < len(l.nodes) && (len(l.nodes)-drop > recentCount || l.bytes > recentBytes); drop++ {
		n := l.nodes[drop]
		l.floor = n.event.Sequence
		l.bytes -= len(n.event.Status)
		if n.replaced != 0 {
			l.replaced--
		}
		if l.newest[n.event.UID] == n {
			delete(l.newest, n.event.UID)
		}
	}
	l.nodes = slices.Delete(l.nodes, 0, drop)
}

// search returns the index of the first node from a sequence on.
func (l *recent) search(from journal.Sequence) int {
	i, _ := slices.BinarySearchFunc(l.nodes, from, func(n *recentNode, s journal.Sequence) int {
		return cmp.Compare(n.event.Sequence, s)
	})
	return i
}

// compute returns the place of what is computed of an event.
func (l *recent) compute(n *recentNode) *sharedEvent {
	if n.shared != nil {
		return n.shared
	}
	n.shared = &sharedEvent{}
	l.computed = append(l.computed, n)
	if len(l.computed) > recentShared {
		l.computed[0].shared = nil
		l.computed = slices.Delete(l.computed, 0, 1)
	}
	return n.shared
}

func (n *recentNode) replacedBy(s journal.Sequence) bool { return n.replaced != 0 && n.replaced <= s }

// shownKind says whether a watch shows events of a kind.
func shownKind(k journal.Kind) bool {
	return k == journal.KindSet || k == journal.KindFinished || k == journal.KindRemoved
}
