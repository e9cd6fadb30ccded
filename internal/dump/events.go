// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
)

// eventsFlags belong to the events verb, which is also the default one.
type eventsFlags struct {
	common
	filterFlags
	follow  bool
	changes bool
}

func eventsCommand(std *streams) *cobra.Command {
	var f eventsFlags
	c := &cobra.Command{
		Use:   "events FILE",
		Short: "Print events in order (the default command)",
		Long: `Print events in order, one a line, oldest first. With -p, what each event changed
in its pod's status, field by field.`,
		Example: `  journal-dump /var/lib/statusstore
  journal-dump --pod default/web-0 --since 2h journal.db
  journal-dump --since epoch:7 journal.db
  journal-dump -p --pod web-0 journal.db
  journal-dump -o ndjson --kind rejected,removed journal.db
  journal-dump --socket /var/lib/statusstore/statusstore.sock --follow`,
		Args:              eventsArgs,
		ValidArgsFunction: completeFile,
		RunE:              func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	f.common.register(c)
	f.filterFlags.register(c)
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with new events as they come, until --to or --until; needs --socket")
	c.Flags().BoolVarP(&f.changes, "patch", "p", false, "what each event changed, field by field")
	return c
}

// eventsArgs tells a mistyped verb, and a verb behind its file, from a journal.
func eventsArgs(c *cobra.Command, args []string) error {
	if len(args) < 2 || c.HasParent() {
		return nil
	}
	for _, verb := range c.Commands() {
		if verb.Name() == args[1] {
			return usagef("the command comes first: journal-dump %s %s", args[1], strings.Join(append(args[:1:1], args[2:]...), " "))
		}
	}
	if _, err := os.Stat(args[0]); err == nil {
		return usagef("%q behind %s is no command: for one pod, type journal-dump --pod %[1]s %[2]s", args[1], args[0])
	}
	return usagef("unknown command %q; see journal-dump --help", args[0])
}

func (f *eventsFlags) run(ctx context.Context, std *streams, args []string) error {
	want, err := f.filterFlags.parse(f.clock(), time.Now())
	if err != nil {
		return err
	}
	if f.follow {
		return f.runFollow(ctx, std, args, want)
	}
	return f.read(ctx, std, args, func(s *session) error {
		if err := s.checkRange(ctx, want); err != nil {
			return err
		}
		err := f.print(s.out, s.damage, s.clock, want, s.wanted(ctx, want, f.changes))
		if want.from <= 1 && want.to == 0 && s.foreign() {
			s.nameForeign()
		}
		return err
	})
}

// wanted yields the good events that may be wanted and reports the others as
// damage. With history, also those before that concern the same pods: what an
// event changed is only known from the one before it. It ends early with the
// cause when ctx ends.
func (s *session) wanted(ctx context.Context, want filter, history bool) iter.Seq2[Event, error] {
	o := scan.Options{From: max(want.from, want.since.sequence), To: want.to, Keep: want.keep(!history)}
	if last := want.until.sequence; last != 0 && (o.To == 0 || last < o.To) {
		o.To = last
	}
	if history {
		o.From = 1
	}
	return func(yield func(Event, error) bool) {
		for e, err := range s.events(ctx, o, s.damage.report) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(fromJournal(e), nil) {
				return
			}
		}
	}
}

// print writes the events that are wanted.
func (f *eventsFlags) print(out *output, d *damage, clock clock, want filter, events iter.Seq2[Event, error]) (err error) {
	rows := newList(out, eventColumns(clock))
	rows.header = rows.header && out.terminal // in a pipe there are events only
	show := rows.add
	if f.changes && out.format.text() {
		show = func(e *Event) error { return printChanges(out, clock, e) }
	} else {
		defer func() { err = cmp.Or(err, rows.close()) }()
	}
	history := changeLog{d.redact, map[types.UID]*Event{}}
	for e, err := range events {
		if err != nil {
			return err
		}
		match := want.match(&e)
		if !match && !(f.changes && want.concerns(&e)) {
			continue
		}
		if f.changes {
			e.Changes, err = history.next(&e, match)
		} else {
			err = e.decode()
		}
		if err != nil {
			d.report(err) // the status only: the event itself is printed
		}
		if !match {
			continue
		}
		if err := show(d.redact.event(&e)); err != nil {
			return err
		}
	}
	return nil
}

func eventColumns(clock clock) []column[*Event] {
	return []column[*Event]{
		{name: "SEQUENCE", width: 8, cell: func(e *Event) string { return fmt.Sprint(e.Sequence) }},
		{name: "TIME", width: 24, cell: func(e *Event) string { return clock.format(e.Time) }},
		{name: "EPOCH", width: 5, wide: true, cell: func(e *Event) string { return fmt.Sprint(e.Epoch) }},
		{name: "KIND", width: 8, cell: func(e *Event) string { return e.Kind }},
		{name: "REASON", width: 9, cell: func(e *Event) string { return string(e.Reason) }},
		{name: "POD", width: 28, cell: (*Event).pod},
		{name: "UID", width: 36, wide: true, cell: func(e *Event) string { return string(e.UID) }},
		{name: "VERSION", width: 7, cell: func(e *Event) string { return fmt.Sprint(e.Version) }},
		{name: "LIFE", width: 4, wide: true, cell: func(e *Event) string { return fmt.Sprint(e.Incarnation) }},
		{name: "PHASE", width: 9, cell: func(e *Event) string { return summarise(e.Status).phase }},
		{name: "READY", width: 5, cell: func(e *Event) string { return summarise(e.Status).ready }},
		{name: "RESTARTS", width: 8, wide: true, cell: func(e *Event) string { return summarise(e.Status).restarts }},
		{name: "DETAIL", width: 6, cell: func(e *Event) string { return shorten(e.detail(), detailWidth) }},
		{name: "MESSAGE", width: 7, wide: true, cell: func(e *Event) string { return summarise(e.Status).message }},
	}
}

// detailWidth keeps one event to about two lines of a terminal.
const detailWidth = 120

// detail is what else there is to say in a table.
func (e *Event) detail() string {
	parts := []string{}
	if e.Finished {
		parts = append(parts, "finished")
	}
	if d := summarise(e.Status).detail; d != "" {
		parts = append(parts, d)
	}
	for _, k := range slices.Sorted(maps.Keys(e.Attributes)) {
		if e.Attributes[k] != "" { // such as the container of a refused phase
			parts = append(parts, k+"="+e.Attributes[k])
		}
	}
	return strings.Join(parts, "; ")
}

// nameForeign names what somebody else put into the file.
func (s *session) nameForeign() {
	notes, err := foreign(s.path, s.Head())
	for _, n := range notes {
		if n.damage {
			s.damage.report(errors.New(n.text))
			continue
		}
		s.damage.note("%s", n.text)
	}
	if err != nil && s.damage.count == 0 {
		s.damage.report(fmt.Errorf("looking for foreign keys: %w", err))
	}
}
