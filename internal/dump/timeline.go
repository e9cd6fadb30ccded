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
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// maxTimelineEvents bounds what a page holds: it is read by a browser as a whole.
const maxTimelineEvents = 250_000

func timelineCommand(std *streams) *cobra.Command {
	var f common
	var times filterFlags
	var out string
	c := &cobra.Command{
		Use:   "timeline FILE",
		Short: "Draw pods over time: phases, readiness, restarts, agent restarts; in the terminal, or as one HTML page",
		Long: `Draw each pod as a row over time: phases and readiness as bars, restarts, refused
updates, starts of the agent, and what the API server has not acknowledged.

With --out, write one self-contained HTML page, which needs no network: zoom, search,
and each event's changes at a click or by keyboard. OUT must not exist; its mode is
0600. Without --out, draw in the terminal.`,
		Example: `  journal-dump timeline /var/lib/statusstore
  journal-dump timeline --since 2h --out incident.html journal.db
  journal-dump timeline --redact --out public.html journal.db`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := times.parse(f.clock(), time.Now())
			if err != nil {
				return err
			}
			if c.Flags().Changed("out") && out == "" {
				return usagef("--out is empty: name the page, as in --out incident.html")
			}
			if err := mustNotExist(out); err != nil {
				return err
			}
			return f.read(c.Context(), std, args, func(s *session) error {
				t, err := s.timeline(c.Context(), want, out != "")
				if err != nil {
					return err
				}
				if out == "" {
					return t.draw(s.out, s.clock)
				}
				if err := t.writePage(out); err != nil {
					return err
				}
				s.out.line("", fmt.Sprintf("%s: %d pods, %d events", out, len(t.pods), t.events))
				return s.out.flush()
			})
		},
	}
	f.registerSource(c)
	c.Flags().StringVar(&times.pod, "pod", "", "only this pod, `NS/NAME` or NAME in default")
	c.Flags().StringVar(&times.uid, "uid", "", "only the pod with this `UID`")
	_ = c.RegisterFlagCompletionFunc("pod", completePod)
	_ = c.RegisterFlagCompletionFunc("uid", completeUID)
	times.registerTimes(c)
	c.Flags().StringVar(&out, "out", "", "write a page to this `FILE.html` instead of drawing in the terminal")
	_ = c.MarkFlagFilename("out", "html")
	return c
}

// timeline is what is drawn: pods by name, and the starts of the agent.
type timeline struct {
	node     string
	from, to time.Time // of the events that are drawn
	pods     []*lane
	epochs   []epochStart
	events   int
}

// lane is one pod UID over time.
type lane struct {
	namespace, name string
	uid             types.UID
	start           laneState // at the beginning of what is drawn
	moments         []moment
	// unsynced is when the oldest version came that is not acknowledged; zero if
	// all are.
	unsynced time.Time
	restarts int
	acked    journal.Version
}

// laneState is what a bar shows.
type laneState struct {
	phase phaseCode
	ready scan.Readiness
}

type phaseCode uint8

const (
	phaseAbsent phaseCode = iota
	phasePending
	phaseRunning
	phaseSucceeded
	phaseFailed
	phaseOther
)

func phaseOf(s *v1.PodStatus) phaseCode {
	switch s.Phase {
	case v1.PodPending:
		return phasePending
	case v1.PodRunning:
		return phaseRunning
	case v1.PodSucceeded:
		return phaseSucceeded
	case v1.PodFailed:
		return phaseFailed
	default:
		return phaseOther
	}
}

// moment is one event of a lane.
type moment struct {
	sequence journal.Sequence
	version  journal.Version
	at       time.Time
	kind     string
	reason   string
	state    laneState // from here on
	restart  bool
	finished bool // newly
	text     string
	changes  []Change
}

// epochStart is one start of the agent.
type epochStart struct {
	epoch   journal.Epoch
	at      time.Time
	before  time.Time // of the last event before it; zero if there is none
	unclean bool
}

// timeline reads what is drawn. Details are what a click shows.
func (s *session) timeline(ctx context.Context, want filter, details bool) (*timeline, error) {
	b := &timelineBuilder{session: s, want: want, details: details, acks: s.acks(), lanes: map[types.UID]*lane{},
		story: story{lives: map[types.UID]*life{}, redact: s.redact}, history: changeLog{s.redact, map[types.UID]*Event{}}}
	b.node = s.redact.word("node", s.Info().Node)
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
	for _, l := range b.lanes { // alive all the time, without an event
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

type timelineBuilder struct {
	timeline
	*session
	want    filter
	details bool
	acks    map[types.UID]journal.Ack
	lanes   map[types.UID]*lane
	story   story
	history changeLog
}

func (b *timelineBuilder) add(e *Event, before time.Time) error {
	inside := b.want.within(e.Sequence, e.Epoch, e.Time)
	if inside {
		if b.from.IsZero() || e.Time.Before(b.from) {
			b.from = e.Time
		}
		if e.Time.After(b.to) {
			b.to = e.Time
		}
	}
	if e.Kind == "opened" {
		if inside {
			b.epochs = append(b.epochs, epochStart{e.Epoch, e.Time, before, e.Attributes[journal.AttrClean] == "false"})
		}
		return nil
	}
	l := b.lanes[e.UID]
	if l == nil {
		l = &lane{namespace: e.Namespace, name: e.Name, uid: e.UID, acked: b.acks[e.UID].Version}
		b.lanes[e.UID] = l
	}
	m, err := b.moment(l, e)
	if err != nil {
		b.damage.report(err)
		return nil
	}
	switch {
	case !inside && len(l.moments) == 0:
		l.start = m.state
	case inside:
		if len(l.moments) == 0 {
			b.pods = append(b.pods, l)
		}
		l.moments = append(l.moments, m)
		if b.events++; b.events > maxTimelineEvents && b.details {
			return fmt.Errorf("%s: more than %d events are too many for one page: narrow them with --since, --until or --pod", b.name, maxTimelineEvents)
		}
	}
	return nil
}

// moment tells what an event does to its lane, and what a click on it shows.
func (b *timelineBuilder) moment(l *lane, e *Event) (moment, error) {
	m := moment{sequence: e.Sequence, version: e.Version, at: e.Time, kind: e.Kind, reason: string(e.Reason), state: l.state()}
	if err := e.decode(); err != nil {
		return m, err
	}
	switch {
	case e.Kind == "removed":
		m.state, l.unsynced = laneState{}, time.Time{}
	case e.Status != nil:
		m.state = laneState{phaseOf(e.Status), readinessOf(e.Status)}
		total := summarise(e.Status).restartCount
		m.restart = total > l.restarts
		l.restarts = total
		if e.Version > l.acked && l.unsynced.IsZero() && e.Reason != journal.ReasonObserved {
			l.unsynced = e.Time
		}
	}
	m.finished = e.Kind == "finished"
	if !b.details {
		return m, nil
	}
	var err error
	if m.changes, err = b.history.next(e, true); err != nil {
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

// state is the lane's newest.
func (l *lane) state() laneState {
	if n := len(l.moments); n > 0 {
		return l.moments[n-1].state
	}
	return l.start
}

func readinessOf(s *v1.PodStatus) scan.Readiness {
	c, ok := condition(s, v1.PodReady)
	switch {
	case !ok:
		return scan.Unstated
	case c.Status == v1.ConditionTrue:
		return scan.Ready
	default:
		return scan.NotReady
	}
}
