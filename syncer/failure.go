// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
)

// Failure is why a pod is put aside.
type Failure struct {
	// Reason is one word: the server's (Invalid, Forbidden, NotFound, …) or
	// Timeout, Unreachable, ConnectionBroken.
	Reason string
	// Message is the server's text, at most about 1 KiB.
	Message string
	// Code is the HTTP status, 0 without an answer.
	Code int
	// Attempts went wrong in a row, the first at Since. The next is due at RetryAt.
	Attempts       int
	Since, RetryAt time.Time
}

// failed records what a failed request means. It reports whether the pod is to be
// looked at again at once.
func (w *turn) failed(ctx context.Context, verb string, err error, start time.Time) bool {
	s := w.s
	o := classify(ctx, err)
	if o.class == classStop {
		return false
	}
	s.o.Observer.Request(verb, o.reason, time.Since(start))
	now := time.Now()
	if o.class == classServer {
		since := start
		if w.track.wait.on == waitServer {
			since = w.track.failure.Since
		}
		if s.circuit.failure(w.uid, o.fault, since, now) {
			s.o.Observer.Circuit(true)
			s.report.warn("API server does not answer, probing", logkey.Reason, o.reason, logkey.Err, o.message)
		}
	} else {
		s.alive(now)
	}

	switch {
	case o.class == classGone && (verb == "DELETE" || w.deleting || w.goneForGood()):
		w.drop(ctx, journal.ReasonDeleted)
		return false
	case o.class == classConflict && !w.conflicted:
		// Not each conflict is about the UID: what the server has now tells.
		w.conflicted, w.deleting = true, verb == "DELETE"
		return w.look(ctx)
	case verb == "PATCH" && w.firstInvalid(o) && !w.conflicted:
		// The patch may have been made for an object older than the server's, as after
		// an outage whose last answer was lost.
		w.conflicted = true
		if !w.look(ctx) {
			return false
		}
		if t, _ := s.tracks.get(w.uid); t.recent.pod != nil && t.recent.pod.ResourceVersion != w.sentTo {
			return true
		}
	}
	w.putAside(o, start, now)
	return false
}

// firstInvalid reports whether the server finds fault with the version's content
// for the first time.
func (w *turn) firstInvalid(o outcome) bool {
	return o.invalid &&
		(w.track.wait.on != waitRefused || w.track.wait.version != w.entry.Version)
}

// goneAttempts is how often the server must deny that a finished pod exists. More
// than once, since a server that is being restored denies what it will have again.
const goneAttempts = 3

// goneForGood reports whether nothing is left to do for a pod that is not there:
// its resources are reclaimed, and only its deletion was to come (SEMANTICS 97).
func (w *turn) goneForGood() bool {
	return w.entry.Finished && w.track.wait.on == waitGone && w.track.failure.Attempts >= goneAttempts-1
}

// putAside makes the pod wait.
func (w *turn) putAside(o outcome, start, now time.Time) {
	s := w.s
	next := pause{on: o.waits(), tried: now, version: w.entry.Version, fault: o.fault}
	f := w.track.failure
	if f.Attempts == 0 || w.track.wait.on != next.on {
		f = Failure{Since: start}
	}
	f.Attempts++
	f.Reason, f.Message, f.Code = o.reason, o.message, o.code

	b := backoff{s.o.RetryBase, s.o.RetryMax}
	if next.on == waitServer && !s.circuit.aliveSince(f.Since) {
		b.max = min(b.max, serverRetryMax)
	}
	d := max(b.after(f.Attempts), min(o.retryAfter, s.o.RetryAfterMax))
	next.until = now.Add(d)
	f.RetryAt = next.until

	loud := false
	s.tracks.update(w.uid, func(t *track) {
		t.wait, t.failure, t.settled, t.resting = next, f, settled{}, 0
		if next.on == waitGone {
			t.recent = answer{}
		}
		if loud = now.Sub(t.logged) >= repeatAfter; loud {
			t.logged = now
		}
	})
	s.noteError(w.entry.Namespace+"/"+w.entry.Name+": "+o.message, now)
	// Server trouble is reported once for all pods when the circuit opens.
	if open, _ := s.circuit.state(); loud && !open {
		s.o.Logger.Warn("pod is put aside", w.about(logkey.Reason, o.reason, logkey.Code, o.code, logkey.Attempt, f.Attempts,
			logkey.Wait, d.Round(time.Millisecond), logkey.Version, w.entry.Version, logkey.Err, o.message)...)
	}
	s.enqueueAfter(w.uid, d)
}

func (o outcome) waits() waitFor {
	switch o.class {
	case classGone:
		return waitGone
	case classThrottled:
		return waitThrottle
	case classServer:
		return waitServer
	default:
		return waitRefused
	}
}

// succeeded counts a request that did what it should.
func (w *turn) succeeded(verb string, start time.Time) {
	now := time.Now()
	w.s.o.Observer.Request(verb, "ok", now.Sub(start))
	w.s.alive(now)
}

// alive notes that the server answered. If it was taken for dead, everything that
// waited for it goes now.
func (s *Syncer) alive(now time.Time) {
	released, before, reopened := s.circuit.success(now)
	if !reopened {
		return
	}
	s.o.Observer.Circuit(false)
	s.o.Logger.Info("API server answers again", logkey.Count, len(released))
	for _, uid := range released {
		s.tracks.update(uid, func(t *track) {
			// A pod that failed while others didn't has to wait on.
			if t.wait.on == waitServer && t.failure.Since.After(before) {
				t.wait.until, t.failure.RetryAt = now, now
			}
		})
		s.enqueue(uid)
	}
}

func (s *Syncer) noteError(text string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastError, s.lastTime = text, at
}

// LastError returns the last failure of any request about a pod, and when it was;
// empty if there was none.
func (s *Syncer) LastError() (string, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastError, s.lastTime
}

// Failing returns the pods that are put aside, by resolved UID, and why.
func (s *Syncer) Failing() map[types.UID]Failure {
	s.tracks.mu.Lock()
	defer s.tracks.mu.Unlock()
	failing := make(map[types.UID]Failure)
	for uid, t := range s.tracks.pods {
		if t.failure.Attempts > 0 {
			failing[uid] = t.failure
		}
	}
	return failing
}

// Stats are counts for metrics.
type Stats struct {
	Queued      int  // pods that wait for a worker
	InFlight    int  // pods that workers deal with
	Parked      int  // pods that wait for a dead server
	CircuitOpen bool // the server is taken for dead
}

// Stats returns the current counts.
func (s *Syncer) Stats() Stats {
	st := Stats{InFlight: int(s.inFlight.Load())}
	if q := s.queue.Load(); q != nil {
		st.Queued = q.work.Len()
	}
	st.CircuitOpen, st.Parked = s.circuit.state()
	return st
}
