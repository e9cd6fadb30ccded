// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/projection"
)

// drainDead is how long Drain waits for a server that is dead: for a probe.
const drainDead = 2 * probeInterval

// drainPoll is how often Drain looks.
const drainPoll = 20 * time.Millisecond

// pass puts all pods into the queue that may have something to do (SEMANTICS 89,
// 91): memory only, no request. Acks of pods without status (SEMANTICS 99) need no
// care here: the journal drops an ack together with the status.
func (s *Syncer) pass() {
	now := time.Now()
	for _, e := range s.o.Entries.List() {
		if s.needsLook(e, now) {
			s.enqueue(e.UID)
		}
	}
	s.tracks.prune(s.known, now)
}

func (s *Syncer) known(uid types.UID) bool {
	_, ok := s.o.Entries.Get(uid)
	return ok
}

func (s *Syncer) needsLook(e *projection.Entry, now time.Time) bool {
	t, ok := s.tracks.get(e.UID)
	if !ok {
		return true
	}
	if t.wait.on != waitNothing {
		return !now.Before(t.wait.until)
	}
	live, ok := s.o.Live.Get(e.Namespace, e.Name)
	return !ok || t.settled != settledOn(e, live)
}

// Drain waits until everything that can be sent was sent, and returns nil then,
// or an *UndeliveredError when the context ends first, or when the server has been
// dead for two seconds, without an answer to a probe. It doesn't wait for pods that
// the server refuses or doesn't have, nor for held phases. Run must be running; stop
// accepting statuses before, or Drain may never be done.
func (s *Syncer) Drain(ctx context.Context) error {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	sendable := func(t track) bool { return t.wait.on == waitNothing || t.wait.on == waitServer }
	var dead time.Time // since when, as far as it was seen here
	for {
		// All pods are only gone through when the workers have nothing to do.
		if s.idle() && s.undelivered(sendable, nil) == nil {
			return nil
		}
		if open, _ := s.circuit.state(); !open {
			dead = time.Time{}
		} else if dead.IsZero() {
			dead = time.Now()
		} else if time.Since(dead) >= drainDead {
			return s.undelivered(sendable, errServerDead)
		}
		select {
		case <-ctx.Done():
			return s.undelivered(sendable, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func (s *Syncer) idle() bool {
	q := s.queue.Load()
	return s.inFlight.Load() == 0 && (q == nil || q.work.Len() == 0)
}

// undelivered returns nil, or an *UndeliveredError with the number of pending
// pods that count and something could be sent for.
func (s *Syncer) undelivered(counts func(track) bool, cause error) error {
	var e UndeliveredError
	for _, entry := range s.o.Entries.List() {
		if !entry.Pending() {
			continue
		}
		t, ok := s.tracks.get(entry.UID)
		if t.resting == entry.Version || !counts(t) {
			continue
		}
		e.Pods++
		if ok && t.failure.Attempts > 0 {
			e.Reason = t.failure.Message
		}
	}
	if e.Pods == 0 {
		return nil
	}
	e.Err = cause
	return &e
}

// flush makes acks durable soon after they were made, and never writes when there
// are none.
func (s *Syncer) flush(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.flushes:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(flushDelay):
		}
		if err := s.flushAcks(ctx); err != nil && ctx.Err() == nil {
			s.report.warn("cannot store acks, trying again", logkey.Err, err)
			s.needFlush()
		}
	}
}

func (s *Syncer) needFlush() {
	select {
	case s.flushes <- struct{}{}:
	default:
	}
}

func (s *Syncer) flushAcks(ctx context.Context) error {
	if err := s.o.Acks.Flush(ctx); err != nil {
		return fmt.Errorf("flush acks: %w", err)
	}
	return nil
}

// lastFlush is the end of Run. What it can't store costs a comparison at the next
// start, so the error is only logged.
func (s *Syncer) lastFlush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := s.flushAcks(ctx); err != nil {
		s.report.warn("cannot store acks at the end", logkey.Err, err)
	}
	return nil
}
