// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
)

// errEnd ends a watch in order: its time is over, or the agent stops.
var errEnd = errors.New("end of the watch")

// watchPods answers GET …/pods?watch=1. The watch follows the journal itself: it
// needs no buffer, however slow its client is. Of the statuses of a pod that came
// since it was last its turn, it delivers the newest. Should retention trim what it
// has not read yet, it ends with 410, and the client lists again.
func (a *api) watchPods(w http.ResponseWriter, r *http.Request, o listOptions, f format) error {
	head, _ := a.m.Journal().Head()
	if err := checkSequence(listOptions{sequence: o.sequence}, head); err != nil {
		return err
	}
	ctx, cancel := a.streamContext(r)
	defer cancel()
	if o.timeout != nil {
		ctx, cancel = context.WithTimeout(ctx, *o.timeout)
		defer cancel()
	}
	defer a.recent.join(a.m.Journal())()
	out := newWatchWriter(w, o, f)
	turn, ok := a.turns.wait(ctx)
	if !ok {
		return nil
	}
	// Entries are read after the head: what they are ahead of it is skipped later.
	s := &podWatch{a: a, o: o, out: out, cursor: head, shown: newShown(o)}
	if !o.beginsWithAll() {
		s.cursor = cmp.Or(o.sequence, head)
		s.remember()
	} else if err := s.sendInitial(); err != nil {
		return err
	}
	err := out.flush()
	if a.turns.done(turn); err != nil {
		return err
	}
	a.Metrics.watches.Inc()
	defer a.Metrics.watches.Dec()
	err = s.follow(ctx)
	if errors.Is(err, errEnd) || ctx.Err() != nil {
		return nil
	}
	if gone, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status := statusOf(gone)
		return errors.Join(out.send(apiwatch.Error, &status), out.flush())
	}
	return err
}

// podWatch is one watch.
type podWatch struct {
	a      *api
	o      listOptions
	out    *watchWriter
	cursor journal.Sequence // all up to here was sent
	shown  *shown
}

// sendInitial sends all pods that match.
func (s *podWatch) sendInitial() error {
	s.shown.complete = true
	for _, e := range onePerName(s.a.m.Entries()) {
		if s.o.namespace != "" && e.Namespace != s.o.namespace {
			continue
		}
		pod := s.a.podOf(e)
		matches := s.o.matches(pod)
		s.shown.begin(e, pod, matches)
		if matches {
			if err := s.out.send(apiwatch.Added, pod); err != nil {
				return err
			}
		}
	}
	if s.o.initial == nil || !s.o.bookmarks {
		return nil
	}
	return s.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// remember notes how pods are, for when they are removed.
func (s *podWatch) remember() {
	for _, e := range onePerName(s.a.m.Entries()) {
		if s.o.namespace == "" || e.Namespace == s.o.namespace {
			pod := s.a.podOf(e)
			s.shown.remember(e, pod, s.o.matches(pod))
		}
	}
}

// follow sends what happens until the context ends.
func (s *podWatch) follow(ctx context.Context) error {
	ticker := time.NewTicker(s.a.BookmarkInterval)
	defer ticker.Stop()
	marked := s.cursor
	for {
		head, moved := s.a.m.Journal().Head()
		if head > s.cursor {
			if err := s.takeTurn(ctx); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return errEnd
		case <-moved:
			if now, _ := s.a.m.Journal().Head(); now == head {
				return errEnd // the journal was closed
			}
		case <-ticker.C:
			if s.o.bookmarks && s.cursor > marked {
				marked = s.cursor
				if err := errors.Join(s.bookmark(nil), s.out.flush()); err != nil {
					return err
				}
			}
		}
	}
}

// takeTurn sends what there is when it is this watch's turn.
func (s *podWatch) takeTurn(ctx context.Context) error {
	turn, ok := s.a.turns.wait(ctx)
	if !ok {
		return errEnd
	}
	defer s.a.turns.done(turn)
	head, _ := s.a.m.Journal().Head() // what came meanwhile goes along
	if err := s.catchUp(ctx, head); err != nil {
		return err
	}
	return s.out.flush()
}

// catchUp sends events up to a sequence, or to one before it: there is more then.
func (s *podWatch) catchUp(ctx context.Context, to journal.Sequence) error {
	recent, published, ok := s.a.recent.after(s.a.m.Journal(), s.cursor, to)
	if !ok {
		return s.replay(ctx, to)
	}
	for _, e := range recent {
		if ctx.Err() != nil {
			return errEnd
		}
		s.cursor = e.Sequence
		if err := s.event(*e.Event, e.shared); err != nil {
			return err
		}
	}
	s.cursor = published
	return nil
}

// replay sends the events of the journal. They are contiguous, so a gap is
// something that was trimmed before it could be sent.
func (s *podWatch) replay(ctx context.Context, to journal.Sequence) error {
	for e, err := range s.a.m.Journal().Events(s.cursor+1, to) {
		if ctx.Err() != nil {
			return errEnd
		}
		if err != nil {
			s.a.Logger.Warn("watch ends: an event cannot be read", logkey.Sequence, e.Sequence, logkey.Err, err)
			return expired("event %d cannot be read: list again", s.cursor+1)
		}
		if e.Sequence != s.cursor+1 {
			return s.tooOld()
		}
		s.cursor = e.Sequence
		if err := s.event(e, new(sharedEvent)); err != nil {
			return err
		}
	}
	if s.cursor < to {
		return s.tooOld()
	}
	return nil
}

func (s *podWatch) tooOld() error {
	return expired("too old resource version: event %d is not kept any more: list again", s.cursor+1)
}

// event sends what an event of the journal means to this watch.
func (s *podWatch) event(e journal.Event, shared *sharedEvent) error {
	if !shownKind(e.Kind) || s.o.namespace != "" && e.Namespace != s.o.namespace || s.shown.knows(e) {
		return nil
	}
	before, known := s.shown.last(e)
	if e.Kind == journal.KindRemoved {
		// A pod that was removed before the watch began: its client may have seen it.
		unknown := !known && !s.shown.complete
		if unknown && !s.o.identifies() {
			return s.forgotten(e)
		}
		return s.sendAll(s.shown.remove(e, s.successor(e), unknown && s.o.matches(s.identity(e))))
	}
	if _, stored := s.a.m.Entry(e.UID); stored {
		seen, err := shared.podOr(func() (*v1.Pod, error) { return s.a.podAt(e) })
		if err != nil {
			return expired("event %d cannot be read: list again", e.Sequence)
		}
		for _, c := range s.shown.set(e, seen, s.o.matches(seen.Pod)) {
			if c.pod != seen.Pod {
				err = s.out.send(c.kind, c.pod)
			} else {
				err = s.out.sendShared(c.kind, c.pod, shared)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	pod, err := s.a.podAt(e)
	if err != nil {
		return expired("event %d cannot be read: list again", e.Sequence)
	}
	// Removed meanwhile, and its labels are forgotten.
	switch {
	case known && before.uid == e.UID:
		pod.Labels = before.labels
	case !s.o.labels.Empty() && !e.First && !s.shown.complete:
		return s.forgotten(e)
	}
	return s.sendAll(s.shown.set(e, newSharedPod(pod), s.o.matches(pod)))
}

// forgotten ends a watch that can't tell whether a pod matched that is removed.
func (s *podWatch) forgotten(e journal.Event) error {
	return expired("too old resource version: what pod %s/%s was like at event %d is not kept: list again", e.Namespace, e.Name, e.Sequence)
}

// identity is what an event alone tells of the pod that it is about.
func (s *podWatch) identity(e journal.Event) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		Spec:       v1.PodSpec{NodeName: s.a.Node},
	}
}

// successor is the pod that comes into view when another one of its name is
// removed: one whose events came before.
func (s *podWatch) successor(removed journal.Event) *v1.Pod {
	for _, e := range s.a.m.EntriesByName(removed.Namespace, removed.Name) {
		if e.Sequence < removed.Sequence {
			if pod := s.a.podOf(e); s.o.matches(pod) {
				return pod
			}
			return nil
		}
	}
	return nil
}

func (s *podWatch) sendAll(changes []change) error {
	for _, c := range changes {
		if err := s.out.send(c.kind, c.pod); err != nil {
			return err
		}
	}
	return nil
}

func (s *podWatch) bookmark(annotations map[string]string) error {
	pod := &v1.Pod{TypeMeta: podMeta, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: resourceVersion(s.cursor), Annotations: annotations,
	}}
	return s.out.send(apiwatch.Bookmark, pod)
}

// podAt is the pod as an event left it. Usually that is how it is now.
func (a *api) podAt(e journal.Event) (*v1.Pod, error) {
	entry, ok := a.m.Entry(e.UID)
	if ok && entry.UID == e.UID && entry.Sequence == e.Sequence {
		return a.podOf(entry), nil
	}
	then, err := entryAt(e)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Sequence, err)
	}
	return a.podOf(then), nil
}
