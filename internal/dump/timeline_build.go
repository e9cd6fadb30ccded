// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// timeline reads what is drawn. Details are what a click shows.
func (s *session) timeline(ctx context.Context, want filter, details bool) (*timeline, error) {
	if err := s.checkRange(ctx, want); err != nil {
		return nil, err
	}
	b := &timelineBuilder{session: s, want: want, details: details, acks: s.acks(), lanes: map[types.UID]*lane{},
		story: story{lives: map[types.UID]*life{}, redact: s.redact}, history: changeLog{s.redact, map[types.UID]*Event{}}}
	b.node = s.redact.word("node", s.Info().Node)
	var err error
	if b.from, b.to, err = s.window(ctx, want); err != nil {
		return nil, err
	}
	keep := want.keep(false)
	head := s.Head()
	for stored, err := range s.dated(ctx, s.damage.report, func(r *scan.Record) bool { return r.Kind == journal.KindOpened || keep(r) }) {
		if err != nil {
			return nil, err
		}
		s.progress.at("events read", stored.Sequence, head)
		e := fromJournal(stored.Event)
		if err := b.add(&e, stored.before); err != nil {
			return nil, err
		}
	}
	if err := b.frame(ctx); err != nil {
		return nil, err
	}
	for _, l := range b.lanes { // alive at the beginning, without an event
		if len(l.moments) == 0 && l.start.phase != phaseAbsent {
			b.pods = append(b.pods, l)
		}
	}
	slices.SortFunc(b.pods, func(x, y *lane) int {
		return cmp.Or(cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name), cmp.Compare(x.uid, y.uid))
	})
	for _, l := range b.pods {
		l.namespace, l.name, l.uid = s.redact.pod(l.namespace, l.name, l.uid)
	}
	return &b.timeline, nil
}

// window is the time that was asked for; zero where nothing was. A sequence that is
// not kept stands for the next one: until then nothing is known to have changed.
func (s *session) window(ctx context.Context, want filter) (from, to time.Time, err error) {
	from, to = want.since.time, want.until.time
	first := want.since.sequence
	if want.since.epoch != 0 {
		if first, err = s.startOf(ctx, want.since.epoch); err != nil {
			return from, to, err
		}
	}
	if first != 0 {
		if _, _, from, err = s.firstFrom(ctx, first); err != nil {
			return from, to, err
		}
	}
	switch {
	case want.until.sequence != 0:
		_, _, to, err = s.firstFrom(ctx, min(want.until.sequence, s.Head()))
	case want.until.epoch != 0:
		to, err = s.endOf(ctx, want.until.epoch)
	}
	if err == nil && !from.IsZero() && !to.IsZero() && to.Before(from) {
		err = fmt.Errorf("%s: --until, which is %s here, is before --since, which is %s", s.name, s.clock.format(to), s.clock.format(from))
	}
	return from, to, err
}

// endOf is the time of an epoch's last event.
func (s *session) endOf(ctx context.Context, epoch journal.Epoch) (end time.Time, err error) {
	keep := func(r *scan.Record) bool { return r.Epoch > epoch }
	err = s.records(ctx, scan.Options{Keep: keep}, ignore, func(r *scan.Record) bool {
		end = r.TimeBefore()
		return false
	})
	if err == nil && end.IsZero() { // it is the newest
		_, _, end, err = s.firstFrom(ctx, s.Head())
	}
	return end, err
}

type timelineBuilder struct {
	timeline
	*session
	want        filter
	details     bool
	acks        map[types.UID]journal.Ack
	lanes       map[types.UID]*lane
	first, last time.Time // of the events inside
	story       story
	history     changeLog
}

// frame sets the ends that were not asked for. Bars end at the right one, which may
// be after all that is known.
func (b *timelineBuilder) frame(ctx context.Context) error {
	_, _, end, err := b.firstFrom(ctx, b.Head())
	if err != nil {
		return err
	}
	if b.last.After(end) {
		end = b.last
	}
	if b.to.IsZero() {
		if b.to = end; b.from.After(end) { // nothing has happened since
			b.to = b.now
		}
		if b.from.After(b.to) {
			b.to = b.from
		}
	}
	if b.from.IsZero() {
		if b.from = b.first; b.from.IsZero() {
			b.from = b.to
		}
	}
	if b.session.from != nil && b.now.After(end) { // a running agent's journal says how things are now
		end = b.now
	}
	if b.to.After(end) {
		b.damage.note("the journal ends at %s: after that, pods are drawn as they were then", b.clock.format(end))
	}
	return nil
}

// side is where an event lies.
type side int

const (
	sideBefore side = iota
	sideInside
	sideAfter
)

// side of what is drawn. Sequences go first: a clock may have been set back.
func (f *filter) side(e *Event) side {
	switch a, b := f.since, f.until; {
	case e.Sequence < a.sequence, e.Epoch < a.epoch:
		return sideBefore
	case b.sequence != 0 && e.Sequence > b.sequence, b.epoch != 0 && e.Epoch > b.epoch:
		return sideAfter
	case e.Time.Before(a.time):
		return sideBefore
	case !b.time.IsZero() && e.Time.After(b.time):
		return sideAfter
	}
	return sideInside
}

func (b *timelineBuilder) add(e *Event, before time.Time) error {
	side := b.want.side(e)
	if side == sideInside {
		if b.first.IsZero() || e.Time.Before(b.first) {
			b.first = e.Time
		}
		if e.Time.After(b.last) {
			b.last = e.Time
		}
	}
	if e.Kind == "opened" {
		later := side == sideAfter && !before.IsZero() && before.Before(b.to)
		if side == sideInside || later {
			b.epochs = append(b.epochs, epochStart{e.Epoch, e.Time, before, e.Attributes[journal.AttrClean] == "false", later})
		}
		return nil
	}
	l := b.lanes[e.UID]
	if side == sideAfter {
		if l != nil && e.Kind == "removed" { // and with it what is known of its acks
			l.unsynced = time.Time{}
		}
		return nil
	}
	if l == nil {
		l = &lane{namespace: e.Namespace, name: e.Name, uid: e.UID, acked: b.acks[e.UID].Version}
		b.lanes[e.UID] = l
	}
	m, err := b.moment(l, e, side == sideInside)
	if err != nil {
		b.damage.report(err)
		return nil
	}
	l.now = m.state
	if side == sideBefore {
		if len(l.moments) == 0 {
			l.start = l.now
		}
		return nil
	}
	if len(l.moments) == 0 {
		b.pods = append(b.pods, l)
	}
	l.moments = append(l.moments, m)
	if b.events++; b.events > maxTimelineEvents && b.details {
		return fmt.Errorf("%s: more than %d events are too many for one page: narrow them with --since, --until or --pod", b.name, maxTimelineEvents)
	}
	return nil
}

// moment tells what an event does to its lane, and what a click on it shows if it
// is drawn.
func (b *timelineBuilder) moment(l *lane, e *Event, drawn bool) (moment, error) {
	m := moment{sequence: e.Sequence, version: e.Version, at: e.Time, kind: e.Kind, reason: string(e.Reason), state: l.now}
	if err := e.decode(); err != nil {
		return m, err
	}
	switch {
	case e.Kind == "removed":
		m.state, l.unsynced, l.known = laneState{}, time.Time{}, false
	case e.Status != nil:
		m.state = laneState{phaseOf(e.Status), readinessOf(e.Status)}
		total := summarise(e.Status).restartCount
		m.restart = l.known && total > l.restarts // those before are of another time
		l.restarts, l.known = total, true
		if e.Version > l.acked && l.unsynced.IsZero() && e.Reason != journal.ReasonObserved {
			l.unsynced = e.Time
		}
	}
	m.finished = e.Kind == "finished"
	if !b.details {
		return m, nil
	}
	var err error
	if m.changes, err = b.history.next(e, drawn); err != nil {
		return m, err
	}
	sentences, err := b.story.event(e)
	if err != nil {
		return m, err
	}
	texts := make([]string, len(sentences))
	for i, t := range sentences {
		texts[i] = t.Text
	}
	m.text = strings.Join(texts, "\n")
	m.kind, m.reason = b.redact.text(m.kind), b.redact.text(m.reason)
	return m, nil
}
