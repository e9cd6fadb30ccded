// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// unsyncedEntry is a pod whose newest version the server has not acknowledged.
type unsyncedEntry struct {
	Entry
	PendingSince time.Time `json:"pendingSince"` // of the oldest version that waits
	Why          string    `json:"why"`
}

func unsyncedCommand(std *streams) *cobra.Command {
	var f common
	var podFlags podSelection
	c := &cobra.Command{
		Use:   "unsynced FILE",
		Short: "Print what the API server has not acknowledged, and why",
		Long: `Print each pod whose newest version the API server has not acknowledged: since
when it waits, and what is known of the reason; what the server answered is known
only with --socket. An ack that the agent had not
written yet when it died is missing here; the agent finds that out at its start.
Statuses that were observed on the server itself are not listed.`,
		Example: `  journal-dump unsynced /var/lib/statusstore
  journal-dump unsynced --socket /var/lib/statusstore/statusstore.sock -o json`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := podFlags.parse()
			if err != nil {
				return err
			}
			return f.read(c.Context(), std, args, func(s *session) error { return s.printUnsynced(c.Context(), want) })
		},
	}
	f.register(c)
	podFlags.register(c)
	return c
}

func (s *session) printUnsynced(ctx context.Context, want filter) (err error) {
	state, err := s.current(ctx)
	if err != nil {
		return err
	}
	acks := s.acks()
	for _, a := range acks {
		state.ApplyAck(a)
	}
	var pending []*projection.Entry
	for _, e := range state.Entries() {
		if e.Pending() && e.Reason != journal.ReasonObserved && want.wantsEntry(e) {
			pending = append(pending, e)
		}
	}
	since := s.pendingSince(ctx, pending)
	refused := s.lastErrors(ctx)
	rows := newList(s.out, unsyncedColumns(s.clock, s.now))
	defer func() { err = cmp.Or(err, rows.close()) }()
	for _, e := range pending {
		u := unsyncedEntry{Entry: fromEntry(s.redact.entry(e)), PendingSince: cmp.Or(since[e.UID], e.Time), Why: whyPending(e, acks)}
		if text := refused[e.UID]; text != "" {
			u.Why += "; " + s.redact.text(text)
		}
		if acks == nil {
			u.AckedVersion = nil
		}
		if err := rows.add(&u); err != nil {
			return err
		}
	}
	return nil
}

// pendingSince finds the time of each pod's oldest version above its ack, in
// what is kept of the history.
func (s *session) pendingSince(ctx context.Context, pending []*projection.Entry) map[types.UID]time.Time {
	waiting := make(map[types.UID]*projection.Entry, len(pending))
	for _, e := range pending {
		waiting[e.UID] = e
	}
	since := make(map[types.UID]time.Time, len(pending))
	if len(pending) == 0 {
		return since
	}
	ignore := func(error) {} // damage of the history was not asked for: the newest events are good
	for e, err := range s.events(ctx, scan.Options{}, ignore) {
		entry, ok := waiting[e.UID]
		if err != nil || !ok || e.Version <= entry.Acked || e.Incarnation != entry.Incarnation || e.Kind == journal.KindRejected {
			continue
		}
		if _, found := since[e.UID]; !found {
			since[e.UID] = e.Time
		}
	}
	return since
}

// lastErrors asks the agent what the server answered: no journal has that.
func (s *session) lastErrors(ctx context.Context) map[types.UID]string {
	if s.from == nil {
		return nil
	}
	refused, err := s.from.lastErrors(ctx)
	if err != nil {
		s.damage.note("what the API server answered is not known: %v", err)
	}
	return refused
}

// whyPending says what the journal knows of the reason.
func whyPending(e *projection.Entry, acks map[types.UID]journal.Ack) string {
	switch {
	case acks == nil:
		return "acks can't be read"
	case e.Acked == 0:
		return "never acknowledged"
	default:
		return fmt.Sprintf("%d behind; version %d acknowledged at %s", e.Version-e.Acked, e.Acked, acks[e.UID].Time.Format(time.RFC3339))
	}
}

func unsyncedColumns(clock clock, now time.Time) []column[*unsyncedEntry] {
	return []column[*unsyncedEntry]{
		{name: "POD", width: 28, cell: func(e *unsyncedEntry) string { return e.Namespace + "/" + e.Name }},
		{name: "UID", width: 36, wide: true, cell: func(e *unsyncedEntry) string { return string(e.UID) }},
		{name: "VERSION", width: 7, cell: func(e *unsyncedEntry) string { return fmt.Sprint(e.Version) }},
		{name: "ACKED", width: 5, cell: func(e *unsyncedEntry) string { return known(e.AckedVersion) }},
		{name: "SEQUENCE", width: 8, wide: true, cell: func(e *unsyncedEntry) string { return fmt.Sprint(e.Sequence) }},
		{name: "PENDING SINCE", width: 24, cell: func(e *unsyncedEntry) string { return clock.format(e.PendingSince) }},
		{name: "FOR", width: 8, cell: func(e *unsyncedEntry) string { return span(now.Sub(e.PendingSince)) }},
		{name: "PHASE", width: 9, cell: func(e *unsyncedEntry) string { return summarise(e.Status).phase }},
		{name: "FINISHED", width: 8, wide: true, cell: func(e *unsyncedEntry) string { return fmt.Sprint(e.Finished) }},
		{name: "WHY", width: 3, cell: func(e *unsyncedEntry) string { return e.Why }},
	}
}
