// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// maxSteps bounds what is done for a pod at a stretch: look, send, look after a
// conflict, send again.
const maxSteps = 4

// process does what is to be done for a pod now. Nobody else does meanwhile.
func (s *Syncer) process(ctx context.Context, uid types.UID) {
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	if s.tracks.acquire(ctx, uid) != nil {
		return
	}
	defer s.tracks.release(uid)
	w := turn{s: s, uid: uid}
	for range maxSteps {
		if !w.step(ctx) {
			return
		}
	}
}

// turn is what a worker does for one pod before it takes the next.
type turn struct {
	s   *Syncer
	uid types.UID

	entry      *projection.Entry // as read before anything is sent
	track      track
	sentTo     string // resourceVersion of the object that was patched last
	conflicted bool   // there was a conflict already
	deleting   bool   // the conflict was about a DELETE
}

// step reads, decides and acts; it reports whether to do it again.
func (w *turn) step(ctx context.Context) bool {
	s := w.s
	e, ok := s.o.Entries.Get(w.uid)
	if !ok {
		s.tracks.retire(w.uid)
		return false
	}
	w.entry = e
	w.track, _ = s.tracks.get(w.uid)
	if w.track.drop.reason != "" && w.track.drop.incarnation == e.Incarnation {
		w.drop(ctx, w.track.drop.reason)
		return false
	}

	v := s.view(e, w.track)
	d := decide(v)
	w.reportKept(d)
	if d.action == actPatch && w.track.made.again(v.live, d.status) {
		d = w.nothingToSend(v, d)
	}
	switch d.action {
	case actSkip:
		w.settle(v, d)
		return false
	case actForget:
		w.drop(ctx, journal.ReasonRecreated)
		return false
	case actGone:
		w.drop(ctx, journal.ReasonDeleted)
		return false
	}
	if d.ack {
		w.ack(v.live.UID)
	}
	leave, ok := w.enter(v, d)
	if !ok {
		return false
	}
	defer leave()
	switch d.action {
	case actLook:
		return w.look(ctx)
	case actDelete:
		return w.delete(ctx, v.live)
	default:
		return w.send(ctx, v, d)
	}
}

// view gathers what decide needs.
func (s *Syncer) view(e *projection.Entry, t track) view {
	informer, _ := s.o.Live.Get(e.Namespace, e.Name)
	live, answered := newer(informer, t.recent, s.o.Live.complete.Load())
	own, known := s.o.Pods.PodByUID(e.UID)
	_, static := s.o.Pods.MirrorOf(e.UID)
	static = static || known && podstatus.IsStatic(own) || live != nil && podstatus.IsMirror(live)

	v := view{entry: e, live: live, static: static, now: time.Now()}
	switch {
	case live == nil && static:
		v.identity = idUnpaired
	case live == nil:
		v.identity = idAbsent
	case s.o.Pods.ResolveUID(live.UID) == e.UID:
		v.identity = idSame
	case static:
		// Its mirror may only not be known yet, so this is never "recreated".
		v.identity = idUnpaired
	case answered && t.recent.got,
		uint64(e.Sequence) <= s.trusted.Load(),
		known && !own.CreationTimestamp.IsZero() && own.CreationTimestamp.Before(&live.CreationTimestamp):
		v.identity = idRecreated
	default:
		v.identity = idDoubtful
	}
	if v.identity == idSame && s.o.Runtime != nil &&
		podstatus.Terminal(e.Status.Phase) && !podstatus.Terminal(live.Status.Phase) {
		if !known {
			own = live
		}
		v.mayRun = s.o.Runtime.PodCouldHaveRunningContainers(own)
	}
	return v
}

// nothingToSend is the decision when a patch turns out to be superfluous
// (SEMANTICS 85).
func (w *turn) nothingToSend(v view, d decision) decision {
	d.action, d.reason = actSkip, "server holds what can be sent"
	d.ack = !d.held && !ackedBy(w.entry, v.live.UID)
	if deletable(w.entry, v.live) {
		d.action = actDelete
	}
	return d
}

// enter reports whether a request may be sent now; otherwise the pod comes again
// when it may. leave must be called after the request.
func (w *turn) enter(v view, d decision) (leave func(), ok bool) {
	s, t, now := w.s, w.track, v.now
	until := t.wait.until
	if t.wait.version != w.entry.Version {
		// New content may be accepted; but a stream of it is no reason to hurry.
		switch t.wait.on {
		case waitRefused:
			until = earlier(until, t.wait.tried.Add(s.o.RetryBase))
		case waitServer:
			until = earlier(until, t.wait.tried.Add(serverRetryMax))
		}
	}
	if d.action == actPatch {
		until = later(until, t.repairs.due(sending{w.entry.Version, d.held}, now))
	}
	if v.identity == idAbsent && t.wait.on == waitNothing {
		until = now.Add(firstLook)
		s.tracks.update(w.uid, func(t *track) { t.wait = pause{on: waitGone, until: until, version: w.entry.Version} })
	}
	if until.After(now) {
		s.enqueueAfter(w.uid, until.Sub(now))
		return nil, false
	}

	leave = func() {}
	if t.wait.on == waitServer && t.wait.fault == faultSlow {
		// Pods that hang must not take all workers.
		if s.slow.Add(1) > int64(max(1, s.o.Workers/2)) {
			s.slow.Add(-1)
			s.enqueueAfter(w.uid, jitter(time.Second))
			return nil, false
		}
		leave = func() { s.slow.Add(-1) }
	}
	if !s.circuit.admit(w.uid, now) {
		leave()
		return nil, false
	}
	return leave, true
}

// settle ends a turn in which nothing needs to be sent.
func (w *turn) settle(v view, d decision) {
	if d.ack {
		w.ack(v.live.UID)
	}
	if d.held {
		w.s.enqueueAfter(w.uid, w.s.o.HeldInterval)
	}
	w.s.tracks.update(w.uid, func(t *track) {
		t.wait, t.failure = pause{}, Failure{}
		t.settled, t.resting = settled{}, 0
		switch {
		case v.identity != idSame || d.held:
			t.resting = w.entry.Version
		case !d.ack: // else the entry has just changed
			t.settled = settledOn(w.entry, v.live)
		}
	})
}

// look asks the server for the pod.
func (w *turn) look(ctx context.Context) bool {
	start := time.Now()
	pod, err := w.s.api.get(ctx, w.entry.Namespace, w.entry.Name)
	if err != nil {
		return w.failed(ctx, "GET", err, start)
	}
	w.succeeded("GET", start)
	if node := w.s.o.Live.node; node != "" && pod.Spec.NodeName != node {
		// The informer would never show what becomes of it, and it is not ours.
		w.putAside(otherNode(pod.Spec.NodeName, node), start, time.Now())
		return false
	}
	w.s.tracks.update(w.uid, func(t *track) {
		t.recent = w.s.answer(pod)
		t.recent.got = true
		t.wait, t.failure = pause{}, Failure{}
	})
	return true
}

func (s *Syncer) answer(pod *v1.Pod) answer {
	return answer{pod: pod, at: time.Now(), lists: s.o.Live.begun.Load()}
}

// send patches the status, acks from the answer and perhaps deletes.
func (w *turn) send(ctx context.Context, v view, d decision) bool {
	s := w.s
	patch, err := statusPatch(v.live, d.status)
	if err != nil {
		// Not a matter of the server: it is tried again when something changes.
		s.report.warn("cannot compute a patch", w.about(logkey.Err, err)...)
		return false
	}
	if patch == nil {
		d = w.nothingToSend(v, d)
		w.settle(v, d)
		if d.action == actDelete {
			return w.delete(ctx, v.live)
		}
		return false
	}
	if d.repair {
		s.o.Acks.ClearAck(w.uid)
		s.needFlush()
		s.o.Logger.Debug("live status differs from an acked one", w.about(logkey.Version, w.entry.Version)...)
	}
	start := time.Now()
	w.sentTo = v.live.ResourceVersion
	pod, err := s.api.patch(ctx, v.live, patch)
	if err != nil {
		return w.failed(ctx, "PATCH", err, start)
	}
	w.succeeded("PATCH", start)
	differs := podstatus.NeedsReconcile(pod, d.status)
	// Does the server not take what it is sent, or has somebody else written?
	ignored := differs && repeats(pod, d.status, patch)
	s.tracks.update(w.uid, func(t *track) {
		t.recent = s.answer(pod)
		t.wait, t.failure, t.resting = pause{}, Failure{}, 0
		t.made = made{}
		if ignored {
			t.made = made{sent: d.status, got: pod.Status.DeepCopy()}
		}
		t.repairs.note(sending{w.entry.Version, d.held}, start)
		if d.held {
			t.resting = w.entry.Version
		}
	})
	if differs && !ignored {
		return true
	}
	if ignored {
		s.report.warn("server accepted a status but holds another", w.about(logkey.Version, w.entry.Version)...)
	}
	if d.held {
		s.enqueueAfter(w.uid, s.o.HeldInterval)
		return false
	}
	w.ack(pod.UID)
	if deletable(w.entry, pod) {
		return w.delete(ctx, pod)
	}
	return false
}

// delete removes the object; with it goes the status (SEMANTICS 97).
func (w *turn) delete(ctx context.Context, live *v1.Pod) bool {
	start := time.Now()
	err := w.s.api.delete(ctx, live)
	if err == nil {
		w.succeeded("DELETE", start)
		w.drop(ctx, journal.ReasonDeleted)
		return false
	}
	return w.failed(ctx, "DELETE", err, start)
}

// drop removes the status from the journal. If that fails it is tried again, and
// nothing is asked of the server meanwhile.
func (w *turn) drop(ctx context.Context, reason journal.Reason) {
	s := w.s
	// The server has done its part: the end of the run must not undo ours.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.RequestTimeout)
	defer cancel()
	if err := s.o.Drops.Drop(ctx, w.uid, reason); err != nil {
		s.tracks.update(w.uid, func(t *track) { t.drop = dropping{reason, w.entry.Incarnation} })
		s.report.warn("cannot drop a status, trying again", w.about(logkey.Reason, reason, logkey.Err, err)...)
		s.enqueueAfter(w.uid, jitter(s.o.PassInterval))
		return
	}
	s.tracks.forget(w.uid)
	s.o.Logger.Info("dropped a status", w.about(logkey.Reason, reason)...)
}

// ack records the version that was read before the request, not the newest.
func (w *turn) ack(live types.UID) {
	w.s.o.Acks.Ack(w.uid, live, w.entry.Version)
	w.s.needFlush()
	if w.entry.Pending() && !w.entry.PendingSince.IsZero() {
		w.s.o.Observer.Delivered(w.uid, time.Since(w.entry.PendingSince))
	}
}

func (w *turn) reportKept(d decision) {
	if len(d.kept) == 0 || w.track.kept == w.entry.Version {
		return
	}
	w.s.tracks.update(w.uid, func(t *track) { t.kept = w.entry.Version })
	w.s.o.Logger.Warn("server is ahead of the stored status, its values stay",
		w.about(logkey.Version, w.entry.Version, keyFields, d.kept)...)
}

// about are the log attributes of the pod, and more.
func (w *turn) about(more ...any) []any {
	return append([]any{logkey.Namespace, w.entry.Namespace, logkey.Name, w.entry.Name, logkey.UID, w.uid}, more...)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
