// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

// exportFormats are what export can write.
var exportFormats = []string{"ndjson", "otlp", "events"}

func exportCommand(std *streams) *cobra.Command {
	var f eventsFlags
	form := exportFormats[0]
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Print all events for other programs: NDJSON, OpenTelemetry logs, or text as kubectl get events has it",
		Long: `Print all events for other programs, oldest first, as

  ndjson  one JSON object an event, as events -o ndjson prints it
  otlp    OpenTelemetry logs: one JSON object a line, each an OTLP LogsData of up to
          100 records, which a collector's otlpjsonfile receiver reads
  events  text: time, type, reason, object, message, as kubectl get events has it`,
		Example: `  journal-dump export /var/lib/statusstore >events.ndjson
  journal-dump export --since 24h journal.db | jq 'select(.status.phase=="Failed")'
  journal-dump export --format otlp --redact journal.db >logs.otlp.jsonl
  journal-dump export --format events --pod web-0 journal.db`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(exportFormats, form) {
				return usagef("--format %q: want %s", form, strings.Join(exportFormats, ", "))
			}
			want, err := f.filterFlags.parse(f.clock(), time.Now())
			if err != nil {
				return err
			}
			f.output = string(formatNDJSON)
			if form == "events" {
				f.output = string(formatTable)
			}
			return f.read(c.Context(), std, args, func(s *session) error {
				if err := s.checkRange(c.Context(), want); err != nil {
					return err
				}
				switch form {
				case "otlp":
					return s.exportLogs(c.Context(), want)
				case "events":
					return s.exportKubernetes(c.Context(), want)
				}
				events := s.counted(s.wanted(c.Context(), want, false))
				return f.print(s.out, s.damage, s.clock, want, events)
			})
		},
	}
	f.registerSource(c)
	f.registerZone(c)
	f.registerRedact(c)
	f.filterFlags.register(c)
	c.Flags().StringVar(&form, "format", form, "`FORMAT`: "+strings.Join(exportFormats, ", "))
	f.registerHeaders(c, "leave the names of columns out of text")
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// told is an event that is wanted, as it is and with what it tells.
type told struct {
	Event
	sentences []sentence
}

// tell yields the events that are wanted, each with its sentences.
func (s *session) tell(ctx context.Context, want filter) func(func(told, error) bool) {
	return func(yield func(told, error) bool) {
		horizon, err := s.Horizon()
		if err != nil {
			s.damage.report(err)
		}
		story := story{want: filter{namespace: want.namespace, name: want.name, uid: want.uid}, lives: map[types.UID]*life{}, trimmed: horizon > 0, redact: s.redact}
		for e, err := range s.counted(s.wanted(ctx, want, true)) {
			if err != nil {
				yield(told{}, err)
				return
			}
			sentences, err := story.event(&e)
			story.before = e.Time
			if err != nil {
				s.damage.report(err)
			}
			if !want.match(&e) {
				continue
			}
			if !yield(told{*s.redact.event(&e), sentences}, nil) {
				return
			}
		}
	}
}

// counted tells how far it is.
func (s *session) counted(events func(func(Event, error) bool)) func(func(Event, error) bool) {
	if s.progress == nil || s.out.terminal { // rows on the terminal tell that
		return events
	}
	head := s.Head()
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			s.progress.at("events", e.Sequence, head)
			if !yield(e, err) {
				return
			}
		}
	}
}

// kubernetesRow is one line of text as kubectl get events has it.
type kubernetesRow struct {
	at      time.Time
	kind    string
	reason  string
	object  string
	message string
}

func (s *session) exportKubernetes(ctx context.Context, want filter) (err error) {
	rows := newList(s.out, []column[kubernetesRow]{
		{name: "TIME", width: 24, cell: func(r kubernetesRow) string { return s.clock.format(r.at) }},
		{name: "TYPE", width: 7, cell: func(r kubernetesRow) string { return r.kind }},
		{name: "REASON", width: 14, cell: func(r kubernetesRow) string { return r.reason }},
		{name: "OBJECT", width: 28, cell: func(r kubernetesRow) string { return r.object }},
		{name: "MESSAGE", width: 7, cell: func(r kubernetesRow) string { return r.message }},
	})
	defer func() { err = cmp.Or(err, rows.close()) }()
	for e, err := range s.tell(ctx, want) {
		if err != nil {
			return err
		}
		object := "node/" + cmp.Or(s.redact.word("node", s.Info().Node), "?")
		if e.Name != "" {
			object = "pod/" + e.Namespace + "/" + e.Name
		}
		for _, t := range e.sentences {
			row := kubernetesRow{at: t.Time, kind: "Normal", reason: t.happening.reason, object: object, message: t.Text}
			if t.happening.warning {
				row.kind = "Warning"
			}
			if err := rows.add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// summary is an event in one line, for where nothing else is told.
func (e *told) summary() string {
	if len(e.sentences) > 0 {
		texts := make([]string, len(e.sentences))
		for i, t := range e.sentences {
			texts[i] = t.Text
		}
		return strings.Join(texts, "; ")
	}
	text := e.Kind
	if e.Reason != "" {
		text += " (" + string(e.Reason) + ")"
	}
	if e.Kind == "opened" {
		return fmt.Sprintf("the agent started (epoch %d)", e.Epoch)
	}
	return text + ": nothing that is told apart has changed"
}
