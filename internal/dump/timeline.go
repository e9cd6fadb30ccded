// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
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
0600. Without --out, draw in the terminal.

Drawn is the time from --since to --until, or from the first event to the last: each
pod that was there at some moment of it, as it was at its beginning, and what happened
until its end. A sequence and epoch:N stand for the time of their event.`,
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
			if out == standardInput {
				return usagef("--out writes a file, which can't be %s: name one, as in --out incident.html", out)
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
	f.registerZone(c)
	f.registerRedact(c)
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
	from, to time.Time // what is drawn
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

	now      laneState // after the events that were read
	known    bool      // restarts are those of a status of this life
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
	later   bool // than what is drawn, which ends while nothing is recorded
}
