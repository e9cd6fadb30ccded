// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// Entry is one pod of the projection as it is printed.
type Entry struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	UID       types.UID       `json:"uid"`
	Version   journal.Version `json:"version"`
	// AckedVersion is null where it is not known: the journal keeps only each
	// pod's last ack, so in the past it may not be.
	AckedVersion *journal.Version    `json:"ackedVersion"`
	Status       *v1.PodStatus       `json:"status"`
	Sequence     journal.Sequence    `json:"sequence"`
	Time         time.Time           `json:"time"`
	Epoch        journal.Epoch       `json:"epoch"`
	Reason       journal.Reason      `json:"reason"`
	Incarnation  journal.Incarnation `json:"incarnation"`
	Finished     bool                `json:"finished"`
}

func fromEntry(e *projection.Entry) Entry {
	acked := e.Acked
	return Entry{Namespace: e.Namespace, Name: e.Name, UID: e.UID, Version: e.Version, AckedVersion: &acked, Status: e.Status,
		Sequence: e.Sequence, Time: e.Time, Epoch: e.Epoch, Reason: e.Reason, Incarnation: e.Incarnation, Finished: e.Finished}
}

func stateCommand(std *streams) *cobra.Command {
	var f common
	var at string
	var podFlags podSelection
	c := &cobra.Command{
		Use:   "state FILE",
		Short: "Print each pod's newest status, now or at a point of the history",
		Example: `  journal-dump state /var/lib/statusstore
  journal-dump state --at 1200 journal.db
  journal-dump state --at 2026-01-31T03:00:00Z -o yaml --pod web-0 journal.db
  journal-dump state --at 2h journal.db
  journal-dump state --at epoch:7 journal.db`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := podFlags.parse()
			if err != nil {
				return err
			}
			var p point
			if at != "" {
				if p, err = f.clock().parsePoint(at, time.Now()); err != nil {
					return err
				}
			}
			return f.read(c.Context(), std, args, func(s *session) error {
				if at == "" {
					return s.printState(c.Context(), want)
				}
				return s.printStateAt(c.Context(), want, p)
			})
		},
	}
	f.register(c)
	podFlags.register(c)
	c.Flags().StringVar(&at, "at", "", "the state at this `SEQ|TIME`: a sequence, RFC 3339, a duration back from now such as 2h, or epoch:N, the start of that epoch")
	return c
}

// podSelection are the flags of verbs that select pods only.
type podSelection struct{ pod, uid string }

func (p *podSelection) register(c *cobra.Command) {
	c.Flags().StringVar(&p.pod, "pod", "", "only this pod, `NS/NAME` or NAME in default")
	c.Flags().StringVar(&p.uid, "uid", "", "only the pod with this `UID`")
	_ = c.RegisterFlagCompletionFunc("pod", completePod)
	_ = c.RegisterFlagCompletionFunc("uid", completeUID)
}

func (p *podSelection) parse() (filter, error) {
	flags := filterFlags{pod: p.pod, uid: p.uid}
	return flags.parse(clock{time.UTC}, time.Time{})
}

func (f *filter) wantsEntry(e *projection.Entry) bool {
	return f.concerns(&Event{Event: wire.Event{Namespace: e.Namespace, Name: e.Name, UID: e.UID}})
}

func (s *session) printState(ctx context.Context, want filter) error {
	state, err := s.current(ctx)
	if err != nil {
		return err
	}
	acks := s.acks()
	for _, a := range acks {
		state.ApplyAck(a)
	}
	return s.printEntries(state, want, func(_ *projection.Entry, e *Entry) {
		if acks == nil {
			e.AckedVersion = nil
		}
	})
}

func (s *session) printStateAt(ctx context.Context, want filter, p point) error {
	state, moment, err := s.stateAt(ctx, p)
	if err != nil {
		return err
	}
	acks := s.acks()
	return s.printEntries(state, want, func(stored *projection.Entry, e *Entry) {
		// The last ack was given by then, or it tells nothing about then.
		a, ok := acks[stored.UID]
		if ok && a.Version <= e.Version && !a.Time.After(moment) {
			e.AckedVersion = &a.Version
		} else {
			e.AckedVersion = nil
		}
	})
}

// current is the state at the head: from the index, or from all events if that
// is damaged.
func (s *session) current(ctx context.Context) (*projection.State, error) {
	index := true
	newest := func(yield func(journal.Event, error) bool) {
		for e, err := range s.Newest() {
			if err == nil {
				if !yield(e, nil) {
					return
				}
				continue
			}
			s.damage.report(err)
			if e.Sequence == 0 {
				index = false
				return
			}
			s.damage.note("sequence %d is the newest event of a pod; that pod is left out", e.Sequence)
		}
	}
	state := s.fold(newest, projection.Point{})
	if index {
		return state, ctx.Err()
	}
	s.damage.note("the pods are folded from all events instead; a pod whose newest event is damaged is shown as it was before")
	return s.fold(s.good(ctx), projection.Point{}), ctx.Err()
}

// stateAt folds the history up to a point and returns the time of its end.
func (s *session) stateAt(ctx context.Context, at point) (*projection.State, time.Time, error) {
	p, err := s.resolve(ctx, at)
	if err != nil {
		return nil, time.Time{}, err
	}
	if head := s.Head(); p.Sequence > head {
		return nil, time.Time{}, fmt.Errorf("%s: sequence %d is above the head %d", s.name, p.Sequence, head)
	}
	moment := p.Time
	events := func(yield func(journal.Event, error) bool) {
		for e := range s.good(ctx) {
			if p.Sequence != 0 && e.Sequence <= p.Sequence {
				moment = e.Time
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	state := s.fold(events, p)
	s.warnTrimmed(state.Head(), p)
	return state, moment, ctx.Err()
}

// warnTrimmed says if pods may be missing because their events are gone.
func (s *session) warnTrimmed(head journal.Sequence, p projection.Point) {
	horizon, err := s.Horizon()
	if err != nil {
		return // reported by whoever needs the figures
	}
	if head < horizon {
		s.damage.note("history up to sequence %d was trimmed: pods may be missing from the state at this point, which is sequence %d", horizon, head)
	}
}

// good are the events that can be read; the others are reported.
func (s *session) good(ctx context.Context) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for e, err := range s.events(ctx, scan.Options{}, s.damage.report) {
			if err != nil || !yield(e, nil) {
				return // the cause is ctx's
			}
		}
	}
}

func (s *session) fold(events iter.Seq2[journal.Event, error], p projection.Point) *projection.State {
	state, err := projection.At(events, p)
	for _, err := range flatten(err) {
		s.damage.report(err)
	}
	return state
}

// acks is nil if they can't be read, which is reported.
func (s *session) acks() map[types.UID]journal.Ack {
	acks, err := s.Acks()
	if err != nil {
		s.damage.report(err)
		return nil
	}
	return acks
}

func (s *session) printEntries(state *projection.State, want filter, adjust func(stored *projection.Entry, e *Entry)) (err error) {
	rows := newList(s.out, entryColumns(s.clock))
	defer func() { err = cmp.Or(err, rows.close()) }()
	for _, e := range state.Entries() {
		if !want.wantsEntry(e) {
			continue
		}
		entry := fromEntry(s.redact.entry(e))
		adjust(e, &entry)
		if err := rows.add(&entry); err != nil {
			return err
		}
	}
	return nil
}

func entryColumns(clock clock) []column[*Entry] {
	return []column[*Entry]{
		{name: "POD", width: 28, cell: func(e *Entry) string { return e.Namespace + "/" + e.Name }},
		{name: "UID", width: 36, wide: true, cell: func(e *Entry) string { return string(e.UID) }},
		{name: "VERSION", width: 7, cell: func(e *Entry) string { return fmt.Sprint(e.Version) }},
		{name: "ACKED", width: 5, cell: func(e *Entry) string { return known(e.AckedVersion) }},
		{name: "SEQUENCE", width: 8, cell: func(e *Entry) string { return fmt.Sprint(e.Sequence) }},
		{name: "CHANGED", width: 24, cell: func(e *Entry) string { return clock.format(e.Time) }},
		{name: "EPOCH", width: 5, wide: true, cell: func(e *Entry) string { return fmt.Sprint(e.Epoch) }},
		{name: "LIFE", width: 4, wide: true, cell: func(e *Entry) string { return fmt.Sprint(e.Incarnation) }},
		{name: "PHASE", width: 9, cell: func(e *Entry) string { return summarise(e.Status).phase }},
		{name: "READY", width: 5, cell: func(e *Entry) string { return summarise(e.Status).ready }},
		{name: "RESTARTS", width: 8, cell: func(e *Entry) string { return summarise(e.Status).restarts }},
		{name: "DETAIL", width: 6, cell: func(e *Entry) string { return shorten(summarise(e.Status).detail, detailWidth) }},
	}
}

func known(v *journal.Version) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprint(*v)
}
