// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/statusstore/statusstore/test/compare/report"
)

// outages measures what an outage costs.
func (m *run) outages(ctx context.Context) error {
	for _, l := range m.limits() {
		results := map[side][]outage{}
		for round := range m.Rounds {
			for _, which := range order(round) {
				err := m.with(ctx, m.OutagePods, func(w *world) error {
					o, err := w.outage(ctx, which, l, m.Changes, m.Away)
					results[which] = append(results[which], o)
					m.Log.Info("measured", "scenario", "outage", "limit", l, "round", round+1, "side", which, "accepted", o.accepted,
						"away", o.away, "during", o.during, "converge", o.converge, "after", o.after, "back", o.back)
					return err
				})
				if err != nil {
					return fmt.Errorf("%v, %s: %w", l, which, err)
				}
			}
		}
		m.reportOutages(l, results)
	}
	return nil
}

func (m *run) reportOutages(l limit, results map[side][]outage) {
	median := func(which side, value func(outage) float64) float64 {
		var values []float64
		for _, o := range results[which] {
			values = append(values, value(o))
		}
		return report.Median(values)
	}
	total := func(counts map[string]int, verbs ...string) float64 {
		n := 0
		for _, verb := range verbs {
			n += counts[verb]
		}
		return float64(n)
	}
	perSecond := func(o outage) float64 { return total(o.during, "GET", "PATCH") / o.away }
	converge := func(o outage) float64 { return o.converge }
	s := m.report.Section(fmt.Sprintf("server away under %d changes of %d pods, %v", m.Changes, m.OutagePods, l),
		"away s", "GET+PATCH away", "per second", "LIST+WATCH away", "converged s", "GET after", "PATCH after", "went back")
	for _, which := range sides {
		s.Row(string(which),
			median(which, func(o outage) float64 { return o.away }),
			median(which, func(o outage) float64 { return total(o.during, "GET", "PATCH") }),
			median(which, perSecond),
			median(which, func(o outage) float64 { return total(o.during, "LIST", "WATCH") }),
			median(which, converge),
			median(which, func(o outage) float64 { return total(o.after, "GET") }),
			median(which, func(o outage) float64 { return total(o.after, "PATCH") }),
			median(which, func(o outage) float64 { return float64(o.back) }))
	}
	var ratios []float64
	back := 0
	for i, o := range results[ours] {
		back += o.back
		ratios = append(ratios, o.converge/results[stock][i].converge)
	}
	// The workers that were sending when the server went away have failed too.
	m.report.Target(fmt.Sprintf("outage, %v: GETs and PATCHes a second", l), report.AtMost, 1.5, median(ours, perSecond))
	m.report.Target(fmt.Sprintf("outage, %v: time to converge beside stock", l), report.AtMost, 0.5, report.Median(ratios))
	m.report.Target(fmt.Sprintf("outage, %v: pods that went back to an older status", l), report.AtMost, 0, float64(back))
}

// hangs measures what one pod's hanging requests do to the others.
func (m *run) hangs(ctx context.Context) error {
	l := unlimited // or the limit would be what is measured
	type pair struct{ undisturbed, hanging latencies }
	results := map[side][]pair{}
	f := stream{perSecond: m.PerSecond, lasts: m.StreamTime, patience: 5 * time.Second}
	for round := range m.Rounds {
		for _, which := range order(round) {
			var p pair
			for _, hang := range []bool{round%2 == 0, round%2 != 0} {
				err := m.with(ctx, m.StreamPods, func(w *world) error {
					got, err := w.stream(ctx, which, l, f, hang)
					if hang {
						p.hanging = got
					} else {
						p.undisturbed = got
					}
					m.Log.Info("measured", "scenario", "hang", "round", round+1, "side", which, "hang", hang,
						"p50", got.p50, "p99", got.p99, "changes", got.changes, "missing", got.missing)
					return err
				})
				if err != nil {
					return fmt.Errorf("%s: %w", which, err)
				}
			}
			results[which] = append(results[which], p)
		}
	}
	s := m.report.Section(fmt.Sprintf("one of %d pods hangs, %d changes a second of the others", m.StreamPods, m.PerSecond),
		"p50 ms", "p99 ms", "never visible", "p50 ms hanging", "p99 ms hanging", "never visible hanging", "p99 hanging / not")
	for _, which := range sides {
		var columns [7][]float64
		for _, p := range results[which] {
			u, h := p.undisturbed, p.hanging
			ratio := h.p99 / u.p99
			if h.missing > 0 {
				ratio = math.Inf(1)
			}
			for i, v := range []float64{1e3 * u.p50, 1e3 * u.p99, float64(u.missing), 1e3 * h.p50, 1e3 * h.p99, float64(h.missing), ratio} {
				columns[i] = append(columns[i], v)
			}
		}
		row := make([]float64, len(columns))
		for i := range columns {
			row[i] = report.Median(columns[i])
		}
		s.Row(string(which), row...)
		if which == ours {
			m.report.Target("one pod hangs: p99 of the others beside undisturbed", report.AtMost, 1.2, row[6])
		}
	}
	return nil
}
