// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// lane is how a UID waits in the queue.
type lane uint8

const (
	laneNormal lane = iota + 1
	laneUrgent
)

// maxUrgentInRow is after how many urgent pods a normal one gets its turn, so that
// a stream of urgent ones can't starve it.
const maxUrgentInRow = 32

// queue holds UIDs, each at most once. A UID that is added while a worker has it
// comes again when the worker is done, so no wake-up is lost and no two workers
// have the same pod.
type queue struct {
	work  workqueue.TypedDelayingInterface[types.UID]
	lanes *lanes
}

func newQueue() *queue {
	l := &lanes{queued: make(map[types.UID]lane), marked: make(map[types.UID]struct{})}
	work := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.UID]{Queue: l})
	return &queue{
		lanes: l,
		work: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{
			Queue: work,
		}),
	}
}

func (q *queue) add(uid types.UID, in lane) {
	q.lanes.mark(uid, in)
	q.work.Add(uid)
}

// addAfter adds a UID later. An earlier time that was set before stays in force.
func (q *queue) addAfter(uid types.UID, in lane, d time.Duration) {
	q.lanes.mark(uid, in)
	q.work.AddAfter(uid, d)
}

// lanes is the storage of the workqueue: two FIFOs. A UID that is promoted stays
// in the normal one, too, and is skipped there. The workqueue calls Touch, Push,
// Len and Pop under its own lock.
type lanes struct {
	queued         map[types.UID]lane
	normal, urgent []types.UID
	inRow          int

	mu     sync.Mutex             // guards marked
	marked map[types.UID]struct{} // go into the urgent lane when pushed or touched
}

func (l *lanes) mark(uid types.UID, in lane) {
	if in != laneUrgent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marked[uid] = struct{}{}
}

func (l *lanes) unmark(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.marked[uid]
	delete(l.marked, uid)
	return ok
}

// Push implements workqueue.Queue.
func (l *lanes) Push(uid types.UID) {
	if l.unmark(uid) {
		l.queued[uid] = laneUrgent
		l.urgent = append(l.urgent, uid)
		return
	}
	l.queued[uid] = laneNormal
	l.normal = append(l.normal, uid)
}

// Touch implements workqueue.Queue: a UID that waits already was added again.
func (l *lanes) Touch(uid types.UID) {
	if l.unmark(uid) && l.queued[uid] == laneNormal {
		l.queued[uid] = laneUrgent
		l.urgent = append(l.urgent, uid)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int { return len(l.queued) }

// Pop implements workqueue.Queue. It is called only if Len isn't 0.
func (l *lanes) Pop() types.UID {
	if l.inRow >= maxUrgentInRow {
		l.inRow = 0
		if uid, ok := l.take(&l.normal, laneNormal); ok {
			return uid
		}
	}
	if uid, ok := l.take(&l.urgent, laneUrgent); ok {
		l.inRow++
		return uid
	}
	l.inRow = 0
	uid, _ := l.take(&l.normal, laneNormal)
	return uid
}

func (l *lanes) take(from *[]types.UID, in lane) (types.UID, bool) {
	for len(*from) > 0 {
		uid := (*from)[0]
		*from = (*from)[1:]
		if l.queued[uid] == in {
			delete(l.queued, uid)
			return uid, true
		}
	}
	return "", false
}

var _ workqueue.Queue[types.UID] = (*lanes)(nil)
