// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// statsReport is what stats prints.
type statsReport struct {
	journal.Info
	journal.Stats
	Counted       uint64            `json:"countedEvents"`
	ByKind        map[string]uint64 `json:"byKind"`
	ByReason      map[string]uint64 `json:"byReason"`
	FirstTime     time.Time         `json:"firstTime"`
	LastTime      time.Time         `json:"lastTime"`
	Opened        int               `json:"opened"`
	UncleanOpened int               `json:"uncleanOpened"`
	Acks          int               `json:"acks"`
	Unsynced      int               `json:"unsynced"`
	Busiest       []podCount        `json:"busiest"`
	BusiestHours  []hourCount       `json:"busiestHours"`
}

type podCount struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	UID         types.UID `json:"uid"`
	Events      uint64    `json:"events"`
	StatusBytes uint64    `json:"statusBytes"`
}

type hourCount struct {
	Hour   time.Time `json:"hour"`
	Events uint64    `json:"events"`
}

func statsCommand(std *streams) *cobra.Command {
	var f common
	top := 10
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Print figures: events by kind, pod and hour, sizes, retention, restarts of the agent",
		Example: `  journal-dump stats /var/lib/statusstore
  journal-dump stats --top 50 -o json journal.db`,
		RunE: func(c *cobra.Command, args []string) error {
			if top < 0 {
				return usagef("--top %d is negative", top)
			}
			return f.read(c.Context(), std, args, func(s *session) error {
				r, err := s.count(c.Context(), top)
				if err != nil {
					return err
				}
				if s.out.format.text() {
					printStats(s.out, s.clock, r)
					return s.out.flush()
				}
				return s.out.writeOne(r)
			})
		},
	}
	f.register(c)
	c.Flags().IntVar(&top, "top", top, "how many pods and hours to name")
	return c
}

// count reads all events; the figures that the journal keeps are beside them.
func (s *session) count(ctx context.Context, top int) (statsReport, error) {
	r := statsReport{Info: s.Info(), ByKind: map[string]uint64{}, ByReason: map[string]uint64{}}
	r.Path = s.name
	stats, err := s.Stats()
	if err != nil {
		s.damage.report(err)
		stats.Head = s.Head()
	}
	r.Stats = stats
	pods, hours := map[types.UID]*podCount{}, map[time.Time]uint64{}
	versions := map[types.UID]journal.Version{}
	for e := range s.good(ctx) {
		r.Counted++
		r.ByKind[e.Kind.String()]++
		if e.Kind == journal.KindSet || e.Kind == journal.KindRemoved {
			r.ByReason[string(e.Reason)]++
		}
		if r.Counted == 1 || e.Time.Before(r.FirstTime) {
			r.FirstTime = e.Time
		}
		if e.Time.After(r.LastTime) {
			r.LastTime = e.Time
		}
		hours[e.Time.Truncate(time.Hour)]++
		if e.Kind == journal.KindOpened {
			r.Opened++
			if e.Attributes[journal.AttrClean] == "false" {
				r.UncleanOpened++
			}
		}
		if e.UID != "" {
			countPod(pods, &e)
		}
		switch {
		case e.Kind == journal.KindRemoved:
			delete(versions, e.UID)
		case (e.Kind == journal.KindSet || e.Kind == journal.KindFinished) && e.Reason != journal.ReasonObserved:
			versions[e.UID] = e.Version
		}
	}
	acks := s.acks()
	r.Acks = len(acks)
	for uid, v := range versions {
		if acks[uid].Version < v {
			r.Unsynced++
		}
	}
	r.Busiest = busiest(pods, top)
	r.BusiestHours = busiestHours(hours, top)
	return r, ctx.Err()
}

func countPod(pods map[types.UID]*podCount, e *journal.Event) {
	p := pods[e.UID]
	if p == nil {
		p = &podCount{Namespace: e.Namespace, Name: e.Name, UID: e.UID}
		pods[e.UID] = p
	}
	p.Events++
	p.StatusBytes += uint64(len(e.Status))
}

func busiest(pods map[types.UID]*podCount, top int) []podCount {
	out := make([]podCount, 0, len(pods))
	for _, p := range pods {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b podCount) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return out[:min(top, len(out))]
}

func busiestHours(hours map[time.Time]uint64, top int) []hourCount {
	out := make([]hourCount, 0, len(hours))
	for h, n := range hours {
		out = append(out, hourCount{h, n})
	}
	slices.SortFunc(out, func(a, b hourCount) int { return cmp.Or(cmp.Compare(b.Events, a.Events), a.Hour.Compare(b.Hour)) })
	return out[:min(top, len(out))]
}

func printStats(out *output, clock clock, r statsReport) {
	field := func(name, format string, args ...any) {
		out.line("", fmt.Sprintf("%-18s ", name)+fmt.Sprintf(format, args...))
	}
	field("journal", "%s (format %d)", r.Path, r.Format)
	if r.Node != "" {
		field("node", "%s", r.Node)
	}
	field("created", "%s", clock.format(r.Created))
	field("head", "sequence %d, epoch %d", r.Head, r.Epoch)
	field("events", "%d, from sequence %d; trimmed up to %d", r.Counted, r.First, r.Horizon)
	field("time", "%s to %s", clock.format(r.FirstTime), clock.format(r.LastTime))
	field("bytes", "%d in the file, %d in records, %d free", r.FileBytes, r.EventBytes, r.FreeBytes)
	field("pods", "%d, and %d tombstones", r.Pods, r.Tombstones)
	field("acks", "%d; %d pods unsynced", r.Acks, r.Unsynced)
	field("agent starts", "%d, %d of them after an unclean stop", r.Opened, r.UncleanOpened)
	for _, counts := range []struct {
		title string
		of    map[string]uint64
	}{{"kind", r.ByKind}, {"reason", r.ByReason}} {
		for _, name := range slices.Sorted(maps.Keys(counts.of)) {
			field(counts.title+" "+name, "%d", counts.of[name])
		}
	}
	for _, p := range r.Busiest {
		field("busy pod", "%6d events %9d status bytes  %s/%s", p.Events, p.StatusBytes, p.Namespace, p.Name)
	}
	for _, h := range r.BusiestHours {
		field("busy hour", "%6d events  %s", h.Events, clock.format(h.Hour))
	}
}
