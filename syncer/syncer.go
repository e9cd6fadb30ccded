// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"
)

// Syncer sends statuses. See the package comment.
type Syncer struct {
	o       Options
	api     requests
	tracks  tracks
	circuit *circuit
	report  report

	started atomic.Bool
	queue   atomic.Pointer[queue] // nil: Run doesn't run, or waits for the first LIST
	flushes chan struct{}         // readable (capacity 1) when there are acks to flush

	inFlight atomic.Int64 // pods that workers deal with
	slow     atomic.Int64 // of these, the ones whose last request timed out
	// trusted is the highest sequence that was known before the LIST on which the
	// informer builds: for entries up to it the informer's word is final.
	trusted atomic.Uint64

	mu        sync.Mutex // guards the fields below
	lastError string
	lastTime  time.Time
}

// New returns a Syncer. It sends nothing before Run or SyncOnce.
func New(o Options) (*Syncer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Syncer{
		o:       o,
		api:     requests{client: o.Client, timeout: o.RequestTimeout},
		tracks:  tracks{pods: make(map[types.UID]*track)},
		circuit: newCircuit(),
		report:  report{logger: o.Logger},
		flushes: make(chan struct{}, 1),
	}
	if before := s.newestEntry(); !o.Live.started.Load() {
		s.trust(before)
	}
	o.Live.OnChange(s.liveChanged)
	return s, nil
}

// newestEntry is the sequence of the newest entry. Call it before a LIST begins.
func (s *Syncer) newestEntry() (newest uint64) {
	for _, e := range s.o.Entries.List() {
		newest = max(newest, uint64(e.Sequence))
	}
	return newest
}

// trust notes that the entries up to a sequence exist before a LIST begins.
func (s *Syncer) trust(newest uint64) { s.trusted.Store(max(s.trusted.Load(), newest)) }

// Run sends statuses until the context ends, and returns nil then. It needs
// LivePods.Run beside it and may be called once. Requests that are under way when
// the context ends are given up: what they did is found out at the next start.
// To send first what is pending, call Drain before ending the context.
func (s *Syncer) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("syncer: %w", ErrRunning)
	}
	wake, take, stop := s.watchChanges()
	defer stop()

	// An absent pod means nothing before the first LIST is complete.
	select {
	case <-s.o.Live.Synced():
	case <-ctx.Done():
		return s.lastFlush(ctx)
	}
	q := newQueue()
	s.queue.Store(q)
	defer s.queue.Store(nil)
	var running sync.WaitGroup
	for range s.o.Workers {
		running.Go(func() { s.work(ctx, q) })
	}
	running.Go(func() { s.probe(ctx) })
	running.Go(func() { s.flush(ctx) })
	s.listen(ctx, wake, take)
	q.work.ShutDown() // workers wait in the queue, not on the context
	running.Wait()
	return s.lastFlush(ctx)
}

func (s *Syncer) watchChanges() (<-chan struct{}, func() []types.UID, func()) {
	if s.o.Changes == nil {
		return nil, nil, func() {}
	}
	return s.o.Changes.Watch()
}

// listen turns wake-ups and time into work.
func (s *Syncer) listen(ctx context.Context, wake <-chan struct{}, take func() []types.UID) {
	ticker := time.NewTicker(s.o.PassInterval)
	defer ticker.Stop()
	s.pass()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
			for _, uid := range take() {
				s.enqueue(uid)
			}
		case <-ticker.C:
			s.pass()
		}
	}
}

func (s *Syncer) work(ctx context.Context, q *queue) {
	for {
		uid, stopped := q.work.Get()
		if stopped {
			return
		}
		// After the end of the context the queue is only emptied.
		if ctx.Err() == nil {
			s.process(ctx, uid)
		}
		q.work.Done(uid)
	}
}

// probe lets parked pods through, one a second, while the server is taken for dead.
func (s *Syncer) probe(ctx context.Context) {
	for {
		d, ok := s.circuit.untilProbe(time.Now())
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-s.circuit.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(d):
		}
		if uid, ok := s.circuit.unpark(); ok {
			s.enqueue(uid)
		}
	}
}

// Wake makes the syncer look at a pod now, by either UID of a static pod. Call it
// when the Runtime's answer for the pod changed.
func (s *Syncer) Wake(uid types.UID) { s.enqueue(s.o.Pods.ResolveUID(uid)) }

func (s *Syncer) enqueue(uid types.UID) {
	q := s.queue.Load()
	if q == nil {
		return // the first pass will find it
	}
	q.add(uid, s.laneOf(uid))
}

func (s *Syncer) enqueueAfter(uid types.UID, d time.Duration) {
	if q := s.queue.Load(); q != nil {
		q.addAfter(uid, s.laneOf(uid), d)
	}
}

func (s *Syncer) laneOf(uid types.UID) lane {
	if e, ok := s.o.Entries.Get(uid); ok {
		if live, _ := s.o.Live.Get(e.Namespace, e.Name); urgent(e, live) {
			return laneUrgent
		}
	}
	return laneNormal
}

// liveChanged is called for each change that the informer hears of.
func (s *Syncer) liveChanged(old, new *v1.Pod) {
	if new == nil {
		uid := s.o.Pods.ResolveUID(old.UID)
		s.tracks.update(uid, func(t *track) {
			if t.recent.pod != nil && t.recent.pod.UID == old.UID {
				t.recent = answer{}
			}
		})
		s.enqueue(uid)
		return
	}
	recreated := old != nil && old.UID != new.UID
	if recreated {
		s.enqueue(s.o.Pods.ResolveUID(old.UID))
	}
	uid := s.o.Pods.ResolveUID(new.UID)
	e, ok := s.o.Entries.Get(uid)
	if !ok {
		return
	}
	echo := false
	s.tracks.update(uid, func(t *track) {
		echo = t.caughtUp(new, s.o.Live.complete.Load(), time.Now())
		if (old == nil || recreated) && t.wait.on == waitGone {
			t.wait, t.failure = pause{}, Failure{}
		}
	})
	if echo && !e.Pending() {
		return // this is what our own request made of it
	}
	s.enqueue(uid)
}

// SyncOnce does one full pass and returns when it is done: every pod is compared
// and, unless it has to wait after a failure, sent. Without Run of LivePods it
// lists the pods itself. The error is an *UndeliveredError, or says why there was
// no pass.
func (s *Syncer) SyncOnce(ctx context.Context) error {
	if err := s.syncLive(ctx); err != nil {
		return err
	}
	s.tracks.prune(s.known, time.Now())
	var g errgroup.Group
	g.SetLimit(s.o.Workers)
	for _, e := range s.o.Entries.List() {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { s.process(ctx, e.UID); return nil })
	}
	// process returns nothing: what became of each pod is in its track.
	_ = g.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.flushAcks(ctx); err != nil {
		return err
	}
	return s.undelivered(func(t track) bool { return t.wait.on != waitNothing && t.wait.on != waitGone }, nil)
}

func (s *Syncer) syncLive(ctx context.Context) error {
	before := s.newestEntry()
	if !s.o.Live.running.Load() {
		s.trust(before)
		if err := s.o.Live.Refresh(ctx); !errors.Is(err, ErrRunning) {
			return err
		}
		// Run has begun since, and lists by itself.
	}
	select {
	case <-s.o.Live.Synced():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the live pods: %w", context.Cause(ctx))
	}
}
