// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// statsReport is what stats prints.
type statsReport struct {
	journal.Info
	journal.Stats
	PageSize      int               `json:"pageSize,omitempty"`
	FreePages     uint64            `json:"freePages"`
	Counted       uint64            `json:"countedEvents"`
	ByKind        map[string]uint64 `json:"byKind"`
	BytesByKind   map[string]uint64 `json:"bytesByKind"` // of records, as they are stored
	ByReason      map[string]uint64 `json:"byReason"`
	FirstTime     time.Time         `json:"firstTime"`
	LastTime      time.Time         `json:"lastTime"`
	Opened        int               `json:"opened"`
	UncleanOpened int               `json:"uncleanOpened"`
	Acks          int               `json:"acks"`
	Unsynced      int               `json:"unsynced"`
	// Latency is from a version's acceptance to its ack. The journal keeps the
	// last ack of each pod, so there is one sample a pod at most.
	Latency      *latency    `json:"ackLatency,omitempty"`
	Busiest      []podCount  `json:"busiest"`  // by events
	Flapping     []flapCount `json:"flapping"` // by changes of readiness
	BusiestHours []hourCount `json:"busiestHours"`
	Hours        []hourCount `json:"hours"` // all, in order
}

type podCount struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	UID         types.UID `json:"uid"`
	Events      uint64    `json:"events"`
	StatusBytes uint64    `json:"statusBytes"` // decompressed
	StoredBytes uint64    `json:"storedBytes"`
}

// flapCount is a pod that lost its readiness and got it back.
type flapCount struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Changes   uint64    `json:"changes"`
	// UnreadySeconds is the time between losses of readiness and what ended them.
	UnreadySeconds float64 `json:"unreadySeconds"`
}

type hourCount struct {
	Hour   time.Time `json:"hour"`
	Events uint64    `json:"events"`
}

type latency struct {
	Samples int           `json:"samples"`
	P50     time.Duration `json:"p50Nanoseconds"`
	P90     time.Duration `json:"p90Nanoseconds"`
	P99     time.Duration `json:"p99Nanoseconds"`
	Max     time.Duration `json:"maxNanoseconds"`
}

func statsCommand(std *streams) *cobra.Command {
	var f common
	top := decimal{value: 10}
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Print figures: events by kind, pod and hour, flapping pods, ack latency, sizes, retention, restarts of the agent",
		Long: `Print figures of the whole journal: events by kind, reason, pod and hour, the pods
that write most and those whose readiness flaps, the time from a version's acceptance
to its ack (of each pod's newest ack: older ones are not kept), sizes, free pages,
retention, and starts of the agent.`,
		Example: `  journal-dump stats /var/lib/statusstore
  journal-dump stats --top 50 -o json journal.db`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			return f.read(c.Context(), std, args, func(s *session) error {
				r, err := s.count(c.Context(), int(min(top.value, math.MaxInt32)))
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
	f.registerSource(c)
	f.registerOutput(c)
	f.registerZone(c)
	f.registerRedact(c)
	c.Flags().Var(&top, "top", "name `N` pods and hours")
	return c
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
	field("events", "%d, from sequence %d", r.Counted, r.First)
	field("retention", "trimmed up to sequence %d; the oldest event is of %s", r.Horizon, clock.format(r.FirstTime))
	field("time", "%s to %s", clock.format(r.FirstTime), clock.format(r.LastTime))
	field("bytes", "%d in the file, %d in records, %d free", r.FileBytes, r.EventBytes, r.FreeBytes)
	if r.PageSize > 0 {
		field("free pages", "%d of %d, %d bytes each", r.FreePages, r.FileBytes/int64(r.PageSize), r.PageSize)
	}
	field("pods", "%d, and %d tombstones", r.Pods, r.Tombstones)
	field("acks", "%d; %d pods unsynced", r.Acks, r.Unsynced)
	if l := r.Latency; l != nil {
		field("ack latency", "p50 %s, p90 %s, p99 %s, max %s (last acks of %d pods)", span(l.P50), span(l.P90), span(l.P99), span(l.Max), l.Samples)
	}
	field("agent starts", "%d, %d of them after an unclean stop", r.Opened, r.UncleanOpened)
	for _, name := range slices.Sorted(maps.Keys(r.ByKind)) {
		field("kind "+name, "%6d events %9d bytes", r.ByKind[name], r.BytesByKind[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.ByReason)) {
		field("reason "+name, "%6d events", r.ByReason[name])
	}
	for _, p := range r.Busiest {
		field("busy pod", "%6d events %9d status bytes  %s/%s", p.Events, p.StatusBytes, p.Namespace, p.Name)
	}
	for _, p := range r.Flapping {
		field("flapping pod", "%6d changes of readiness, not Ready for %s  %s/%s", p.Changes,
			span(time.Duration(p.UnreadySeconds*float64(time.Second))), p.Namespace, p.Name)
	}
	for _, h := range r.BusiestHours {
		field("busy hour", "%6d events  %s", h.Events, clock.format(h.Hour))
	}
	if text := sparkline(r.Hours, 60); text != "" {
		field("hour by hour", "%s", text)
	}
}

// sparkline draws the last hours as blocks, the tallest for the busiest.
func sparkline(hours []hourCount, width int) string {
	if len(hours) < 2 {
		return ""
	}
	last := hours[len(hours)-1].Hour
	var counts []uint64
	for _, h := range hours {
		back := int(last.Sub(h.Hour) / time.Hour)
		if back < 0 || back >= width {
			continue
		}
		if counts == nil {
			counts = make([]uint64, back+1)
		}
		counts[len(counts)-1-back] += h.Events
	}
	most := slices.Max(counts)
	var b strings.Builder
	for _, n := range counts {
		block := rune('·')
		if n > 0 {
			block = '▁' + rune(7*n/most)
		}
		b.WriteRune(block)
	}
	return b.String()
}
