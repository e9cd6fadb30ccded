// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/statusstore/statusstore/test/compare/report"
)

// Options tune a run.
type Options struct {
	// Launcher is the script that builds and runs control planes.
	Launcher string
	Log      *slog.Logger

	Rounds    int
	Scenarios []string // all of Scenarios if empty
	Pods      []int    // of bursts and restarts
	// Limited and Unlimited choose the clients' limits.
	Limited, Unlimited bool
	// Settle is how long nothing must be sent until a restart is over. A stock
	// manager looks at all pods each 10 s.
	Settle time.Duration

	OutagePods, Changes int
	Away                time.Duration // at least; longer if the changes take longer

	StreamPods, PerSecond int
	StreamTime            time.Duration
}

// Scenarios are the names that Options.Scenarios may have.
var Scenarios = []string{"burst", "outage", "hang"}

// run is one run.
type run struct {
	Options
	plane  *plane
	report *report.Report
}

// Run measures on a control plane of its own.
func Run(ctx context.Context, r *report.Report, o Options) (err error) {
	if len(o.Scenarios) == 0 {
		o.Scenarios = Scenarios
	}
	for _, name := range o.Scenarios {
		if !slices.Contains(Scenarios, name) {
			return fmt.Errorf("no scenario %q, there are %q", name, Scenarios)
		}
	}
	silence()
	p, err := startPlane(ctx, o.Launcher)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	m := &run{Options: o, plane: p, report: r}
	if err := m.warm(ctx); err != nil {
		return err
	}
	for _, name := range o.Scenarios {
		do := map[string]func(context.Context) error{"burst": m.bursts, "outage": m.outages, "hang": m.hangs}[name]
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// silence keeps client-go and the stock manager from reporting each failed request.
var silence = sync.OnceFunc(func() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
})

// warm lets the server do once what it does slowly the first time.
func (m *run) warm(ctx context.Context) error {
	return m.with(ctx, 50, func(w *world) error {
		_, err := w.burst(ctx, stock, unlimited)
		return err
	})
}

// with runs a measurement on pods of its own.
func (m *run) with(ctx context.Context, pods int, do func(*world) error) (err error) {
	w, err := newWorld(ctx, m.plane, pods)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return do(w)
}

// order alternates which side begins.
func order(round int) []side {
	if round%2 == 0 {
		return []side{ours, stock}
	}
	return sides
}

func (m *run) limits() []limit {
	var limits []limit
	if m.Limited {
		limits = append(limits, kubeletLimit)
	}
	if m.Unlimited {
		limits = append(limits, unlimited)
	}
	return limits
}

// series are the results of the rounds, by side.
type series map[side][]result

func (s series) median(which side, value func(result) float64) float64 {
	var values []float64
	for _, r := range s[which] {
		values = append(values, value(r))
	}
	return report.Median(values)
}

func seconds(r result) float64 { return r.seconds }

func requests(verb string) func(result) float64 {
	return func(r result) float64 { return float64(r.requests[verb]) }
}

// ratio is the median of ours/stock, each from one round.
func (s series) ratio(value func(result) float64) float64 {
	var ratios []float64
	for i := range min(len(s[ours]), len(s[stock])) {
		ratios = append(ratios, value(s[ours][i])/value(s[stock][i]))
	}
	return report.Median(ratios)
}

// bursts measures the burst and both restarts on the same pods.
func (m *run) bursts(ctx context.Context) error {
	for _, pods := range m.Pods {
		for _, l := range m.limits() {
			if err := m.burstsOf(ctx, pods, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *run) burstsOf(ctx context.Context, pods int, l limit) error {
	burst, unchanged, tenth := series{}, series{}, series{}
	changed := func(i int) int32 {
		if i%10 == 0 {
			return 1
		}
		return 0
	}
	for round := range m.Rounds {
		for _, which := range order(round) {
			err := m.with(ctx, pods, func(w *world) error {
				r, err := w.burst(ctx, which, l)
				if err != nil {
					return err
				}
				burst[which] = append(burst[which], r)
				if r, err = w.restart(ctx, which, l, m.Settle, same(0)); err != nil {
					return err
				}
				unchanged[which] = append(unchanged[which], r)
				if r, err = w.restart(ctx, which, l, m.Settle, changed); err != nil {
					return err
				}
				tenth[which] = append(tenth[which], r)
				m.Log.Info("measured", "pods", pods, "limit", l, "round", round+1, "side", which,
					"burst", last(burst[which]), "restart", last(unchanged[which]), "tenth", last(tenth[which]))
				return nil
			})
			if err != nil {
				return fmt.Errorf("%d pods, %v, %s: %w", pods, l, which, err)
			}
		}
	}
	s := m.report.Section(fmt.Sprintf("%d pods, %v", pods, l), "seconds", "LIST", "WATCH", "GET", "PATCH", "seconds / stock", "server CPU s", "own CPU s")
	for _, what := range []struct {
		name string
		series
	}{{"burst", burst}, {"restart, nothing changed", unchanged}, {"restart, 10 % changed", tenth}} {
		for _, which := range sides {
			ratio := 1.0
			if which == ours {
				ratio = what.ratio(seconds)
			}
			s.Row(what.name+", "+string(which), what.median(which, seconds), what.median(which, requests("LIST")), what.median(which, requests("WATCH")),
				what.median(which, requests("GET")), what.median(which, requests("PATCH")), ratio,
				what.median(which, func(r result) float64 { return r.cpu.server }), what.median(which, func(r result) float64 { return r.cpu.own }))
		}
	}
	m.burstTargets(pods, l, burst, unchanged, tenth)
	return nil
}

func last(results []result) string {
	r := results[len(results)-1]
	return fmt.Sprintf("%.2fs %v", r.seconds, r.requests)
}

func (m *run) burstTargets(pods int, l limit, burst, unchanged, tenth series) {
	toBurst, toRestart := 0.45, 0.3
	if l == kubeletLimit {
		toBurst, toRestart = 0.5, 0.1
	}
	about := func(what string) string { return fmt.Sprintf("%s, %d pods, %v", what, pods, l) }
	r := m.report
	r.Target(about("burst: time beside stock"), report.AtMost, toBurst, burst.ratio(seconds))
	r.Target(about("burst: GETs"), report.AtMost, 0, burst.most(requests("GET")))
	r.Target(about("burst: PATCHes per pod"), report.AtMost, 1, burst.most(requests("PATCH"))/float64(pods))
	r.Target(about("restart: time beside stock"), report.AtMost, toRestart, unchanged.ratio(seconds))
	r.Target(about("restart: GETs and PATCHes"), report.AtMost, 0, unchanged.most(requests("GET"))+unchanged.most(requests("PATCH")))
	r.Target(about("restart, 10 % changed: GETs"), report.AtMost, 0, tenth.most(requests("GET")))
	r.Target(about("restart, 10 % changed: PATCHes per changed pod"), report.AtMost, 1, tenth.most(requests("PATCH"))/float64((pods+9)/10))
}

// most is the highest value of any round of ours.
func (s series) most(value func(result) float64) float64 {
	highest := 0.0
	for _, r := range s[ours] {
		highest = max(highest, value(r))
	}
	return highest
}
