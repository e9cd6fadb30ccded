// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Group commit without a goroutine: the caller who finds no commit in flight
// leads. It takes all that is queued, commits it as one transaction, releases
// those who waited, and hands the lead to one who queued meanwhile.

const (
	// The leader may wait, yielding, for as many callers as the commit before had:
	// those it released are just about to append again. One caller alone never
	// waits, others a share of what a commit takes. BenchmarkAppend shows the
	// difference.
	gatherShare  = 4
	gatherTime   = 500 * time.Microsecond
	gatherPasses = 10_000 // where the clock stands still while somebody runs
	maxBatch     = 1024
	maxBatchByte = 8 << 20
)

// request is one call of Append or Flush.
type request struct {
	events   []Event
	payloads []payload
	bytes    int
	result   []Event
	err      error
	done     chan struct{} // closed when result and err are set
	lead     chan struct{} // closed when the caller must lead
	promoted bool          // lead is closed; guarded by queue.mu
	gone     bool          // nobody waits any more; guarded by queue.mu
}

type queue struct {
	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool

	last int           // requests in the batch before
	took time.Duration // its commit
}

// Append commits the events as one transaction and returns them with what the
// journal assigned. A nil error means that they are durable.
//
// Errors: ErrClosed, ErrTooLarge, ErrNoPod (a finished or removed event for a
// UID that has no pod), ErrDegraded with its cause; none of the events was
// stored then. If ctx ends while the caller waits for another's commit, Append
// returns its error and the events may have been stored all the same; a caller
// that leads the commit sees it through.
func (j *Journal) Append(ctx context.Context, events ...Event) ([]Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	for i := range events {
		if events[i].Kind == KindOpened || kindNames[events[i].Kind] == "" {
			return nil, fmt.Errorf("append to journal: event of kind %v", events[i].Kind)
		}
		if events[i].UID == "" && events[i].Kind != KindRejected {
			return nil, fmt.Errorf("append to journal: %v event without a UID", events[i].Kind)
		}
	}
	return j.append(ctx, events)
}

func (j *Journal) append(ctx context.Context, events []Event) ([]Event, error) {
	r := newRequest()
	r.events = append(r.events, events...)
	r.payloads = make([]payload, len(events))
	for i := range r.events {
		e := &r.events[i]
		if len(e.Status) > MaxStatusBytes || len(e.Object) > MaxStatusBytes || len(e.Aux) > MaxStatusBytes {
			return nil, fmt.Errorf("append to journal: pod %s: %w: more than %d bytes", e.UID, ErrTooLarge, MaxStatusBytes)
		}
		if len(e.UID) > maxUIDBytes {
			return nil, fmt.Errorf("append to journal: %w: UID of %d bytes", ErrTooLarge, len(e.UID))
		}
		r.payloads[i] = newPayload(e.Status)
		r.bytes += len(r.payloads[i].data) + len(e.Object) + len(e.Aux)
	}
	if err := j.submit(ctx, r); err != nil {
		return nil, err
	}
	return r.result, nil
}

// maxUIDBytes keeps keys far below bbolt's limit; Kubernetes' UIDs have 36.
const maxUIDBytes = 1024

// Flush makes acks durable. Without new ones it does nothing, not even a
// transaction; only a journal that is degraded looks whether it can write again.
func (j *Journal) Flush(ctx context.Context) error {
	if !j.acks.anyDirty() && j.Degraded() == nil {
		return nil
	}
	return j.submit(ctx, newRequest())
}

func newRequest() *request {
	return &request{done: make(chan struct{}), lead: make(chan struct{})}
}

func (j *Journal) submit(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to journal: %w", context.Cause(ctx))
	}
	q := &j.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.waiting = append(q.waiting, r)
	mustLead := !q.leading
	q.leading = true
	q.mu.Unlock()

	if !mustLead {
		select {
		case <-r.done:
			return r.err
		case <-r.lead:
		case <-ctx.Done():
			q.mu.Lock()
			r.gone = true
			mustLead := r.promoted
			q.mu.Unlock()
			if !mustLead {
				return fmt.Errorf("append to journal: %w; it may have been stored", context.Cause(ctx))
			}
		}
	}
	j.leadCommit(r)
	return r.err
}

// leadCommit commits batches until the leader's own request is answered, then
// passes the lead on. One batch is the rule: the leader is the oldest of those
// who wait, and only requests that were abandoned can be before it.
func (j *Journal) leadCommit(own *request) {
	q := &j.queue
	for {
		j.commitBatch()
		if own.answered() && !q.handOver() {
			return
		}
	}
}

// commitBatch releases its lock also when a caller's hook panics: the others get
// to see that, not a lock that nobody holds.
func (j *Journal) commitBatch() {
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	batch := j.queue.gather()
	began := time.Now()
	j.commit(batch)
	j.queue.noteCommit(time.Since(began))
}

func (r *request) answered() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// gather waits a moment for callers that are about to queue, then takes a batch.
func (q *queue) gather() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	patience, began := min(q.took/gatherShare, gatherTime), time.Now()
	for pass := 0; len(q.waiting) < q.last && time.Since(began) < patience && pass < gatherPasses; pass++ {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
	}
	n, bytes := 0, 0
	for n < len(q.waiting) && n < maxBatch && (n == 0 || bytes+q.waiting[n].bytes <= maxBatchByte) {
		bytes += q.waiting[n].bytes
		n++
	}
	q.last = n
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	return batch
}

func (q *queue) noteCommit(took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.took = took
}

// handOver gives the lead to a caller that waits. It returns true if requests
// are queued but all their callers have left: then the leader goes on.
func (q *queue) handOver() (again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.waiting {
		if !r.gone {
			r.promoted = true
			close(r.lead)
			return false
		}
	}
	q.leading = len(q.waiting) > 0
	return q.leading
}

// close refuses new requests; those already queued are still committed.
func (q *queue) close() (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	first = !q.closed
	q.closed = true
	return first
}

func (r *request) finish(err error) {
	r.err = err
	close(r.done)
}

// reject answers a whole batch with one error.
func reject(batch []*request, err error) {
	for _, r := range batch {
		r.finish(err)
	}
}
