// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/test/compare/report"
)

// HistoryOptions tune History.
type HistoryOptions struct {
	Dir     string
	Events  int // of the long history
	Repeats int
	Changes int // of the run under endless change
}

// shortHistory is what opening with a long one is compared to.
const shortHistory = 1000

// History measures what depends on how much was written before: opening, a replay
// of all, and the size of the file under endless change.
func History(r *report.Report, o HistoryOptions) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "compare-history")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := new(run)
	if err := m.prepare(); err != nil {
		return err
	}
	s := r.Section("history, 500 pods", "events", "file MiB", "open ms", "replay events/s", "the same, statuses decoded")
	var opens [2]float64
	for i, events := range []int{shortHistory, o.Events} {
		path := filepath.Join(dir, fmt.Sprint(events, ".db"))
		size, err := m.fill(path, events)
		if err != nil {
			return err
		}
		if opens[i], err = timeOpen(path, o.Repeats); err != nil {
			return err
		}
		sealed, err := timeReplay(path, false)
		if err != nil {
			return err
		}
		full, err := timeReplay(path, true)
		if err != nil {
			return err
		}
		s.Row(fmt.Sprint(events, " events"), float64(events), float64(size)/(1<<20), 1e3*opens[i], float64(events)/sealed, float64(events)/full)
		if events == o.Events {
			r.Target("replay, decoded, events/s", report.AtLeast, 70_000, float64(events)/full)
		}
	}
	r.Target(fmt.Sprintf("open with %d events of history beside %d", o.Events, shortHistory), report.AtMost, 1.5, opens[1]/opens[0])
	r.Target("open warm, ms", report.AtMost, 50, 1e3*max(opens[0], opens[1]))
	return m.endless(r, dir, o.Changes)
}

func unlimited() journal.Options {
	return journal.Options{Retention: journal.Retention{MaxEvents: 1 << 40, MaxBytes: 1 << 50}}
}

// fill writes events of all pods in turn.
func (m *run) fill(path string, events int) (size int64, err error) {
	j, err := journal.Open(path, unlimited())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	batch := make([]journal.Event, 0, 1000)
	for i := range events {
		batch = append(batch, set(m.uids[i%pods], m.statuses[i%len(m.statuses)]))
		if len(batch) == cap(batch) || i == events-1 {
			if _, err := j.Append(context.Background(), batch...); err != nil {
				return 0, err
			}
			batch = batch[:0]
		}
	}
	stats, err := j.Stats()
	return stats.FileBytes, err
}

// timeOpen returns the median seconds of opening for writing.
func timeOpen(path string, repeats int) (float64, error) {
	var times []float64
	for range repeats {
		begin := time.Now()
		j, err := journal.Open(path, unlimited())
		if err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin).Seconds())
		if err := j.Close(); err != nil {
			return 0, err
		}
	}
	return report.Median(times), nil
}

// timeReplay reads and checks everything twice and returns the seconds of the
// second time.
func timeReplay(path string, decode bool) (seconds float64, err error) {
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for range 2 {
		begin := time.Now()
		for e, err := range r.Events(1, 0) {
			if err != nil {
				return 0, err
			}
			if !decode || len(e.Status) == 0 {
				continue
			}
			if _, err := podstatus.Decode(e.Status); err != nil {
				return 0, err
			}
		}
		seconds = time.Since(begin).Seconds()
	}
	return seconds, nil
}

// endless changes 500 pods on and on with default retention and compares the file
// with what lives in it.
func (m *run) endless(r *report.Report, dir string, changes int) (err error) {
	j, err := journal.Open(filepath.Join(dir, "endless.db"), journal.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	m.open = map[string]engine{nameOurs: ours{j}}
	s := r.Section("file under endless change, 500 pods, default retention", "events live", "live MiB", "file MiB", "file / live")
	worst := 0.0
	const steps = 5
	for step := range steps {
		if _, _, err := m.write(nameOurs, 64, changes/steps, time.Hour); err != nil {
			return err
		}
		stats, err := j.Stats()
		if err != nil {
			return err
		}
		ratio := float64(stats.FileBytes) / float64(stats.EventBytes)
		s.Row(fmt.Sprint("after ", (step+1)*(changes/steps)), float64(stats.Events), float64(stats.EventBytes)/(1<<20), float64(stats.FileBytes)/(1<<20), ratio)
		if stats.Events >= retained {
			worst = max(worst, ratio)
		}
	}
	if worst > 0 { // else the run was too short to say anything
		r.Target("file beside its live bytes", report.AtMost, 2, worst)
	}
	return nil
}
