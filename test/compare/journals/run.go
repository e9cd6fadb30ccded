// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/sample"
)

// Options tune a run.
type Options struct {
	// Dir is on the file system to be measured; what is made in it is removed.
	Dir     string
	Rounds  int
	Slice   time.Duration // of each engine at each number of writers in each round
	Writers []int
	Engines []string // all of Names if empty
	// Compress gives the peers statuses that are compressed as the journal does it.
	Compress bool
	// Fill is how many events each engine has before anything is measured. The
	// default is past the first trim, so that retention is part of it.
	Fill int
}

const (
	pods        = 500
	defaultFill = retained + 4*trimAt
	// unitSamples are taken before and after each slice.
	unitSamples = 20
)

const nameOurs = "statusstore"

var engines = []struct {
	name string
	open func(dir string) (engine, error)
}{
	{nameOurs, openOurs},
	{"pebble", openPebble},
	{"sqlite", openSQLite},
	{"tidwall/wal", openTidwall},
	{"bbolt Batch", openBoltBatch},
	{"raft-wal", openRaftWAL},
	{"etcd wal", openEtcdWAL},
}

// Names of the engines.
func Names() []string {
	var names []string
	for _, e := range engines {
		names = append(names, e.name)
	}
	return names
}

// cell is one engine at one number of writers, one value per round.
type cell struct{ rate, p50, p99, unit, p50Units, perUnit []float64 }

// run is one run of the comparison.
type run struct {
	o        Options
	disk     *rawDisk
	open     map[string]engine
	statuses [][]byte
	uids     []types.UID
	cells    map[string]map[int]*cell
}

// Append measures durable appends and notes targets.
func Append(r *report.Report, o Options) (err error) {
	if len(o.Engines) == 0 {
		o.Engines = Names()
	}
	if o.Fill == 0 {
		o.Fill = defaultFill
	}
	dir, err := os.MkdirTemp(o.Dir, "compare-journals")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := &run{o: o, open: map[string]engine{}, cells: map[string]map[int]*cell{}}
	if m.disk, err = openRawDisk(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.disk.close()) }()
	if err := m.prepare(); err != nil {
		return err
	}
	defer func() {
		for _, e := range m.open {
			err = errors.Join(err, e.close())
		}
	}()
	if err := m.openAll(dir); err != nil {
		return err
	}
	for round := range o.Rounds {
		if err := m.round(round); err != nil {
			return err
		}
	}
	m.report(r)
	return nil
}

// prepare encodes the statuses that are appended: of two and three containers.
func (m *run) prepare() error {
	for i := range pods {
		m.uids = append(m.uids, sample.Two.Pod("journals", "node", i).UID)
	}
	for i := range 256 {
		shape := []sample.Shape{sample.Two, sample.Three}[i%2]
		status := shape.Status(shape.Pod("journals", "node", i), i)
		b, err := podstatus.Encode(&status)
		if err != nil {
			return err
		}
		m.statuses = append(m.statuses, b)
	}
	return nil
}

func (m *run) openAll(dir string) error {
	for _, e := range engines {
		if !slices.Contains(m.o.Engines, e.name) {
			continue
		}
		own := filepath.Join(dir, fmt.Sprint("engine-", len(m.open)))
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		opened, err := e.open(own)
		if err != nil {
			return fmt.Errorf("open %s: %w", e.name, err)
		}
		m.open[e.name] = opened
		m.cells[e.name] = map[int]*cell{}
		if _, _, err := m.write(e.name, 256, m.o.Fill, time.Hour); err != nil {
			return fmt.Errorf("fill %s: %w", e.name, err)
		}
	}
	return nil
}

// round measures every cell once; each round begins with another engine.
func (m *run) round(round int) error {
	for _, writers := range m.o.Writers {
		for i := range m.o.Engines {
			name := m.o.Engines[(i+round)%len(m.o.Engines)]
			if m.open[name] == nil {
				return fmt.Errorf("no engine %q, there are %q", name, Names())
			}
			c := m.cells[name][writers]
			if c == nil {
				c = new(cell)
				m.cells[name][writers] = c
			}
			if err := m.slice(c, name, writers); err != nil {
				return fmt.Errorf("%s with %d writers: %w", name, writers, err)
			}
		}
	}
	return nil
}

func (m *run) slice(c *cell, name string, writers int) error {
	before, err := m.disk.measure(unitSamples)
	if err != nil {
		return err
	}
	latencies, took, err := m.write(name, writers, 1<<30, m.o.Slice)
	if err != nil {
		return err
	}
	after, err := m.disk.measure(unitSamples)
	if err != nil {
		return err
	}
	unit := report.Median(append(before, after...))
	rate := float64(len(latencies)) / took.Seconds()
	p50 := report.Median(latencies)
	c.rate = append(c.rate, rate)
	c.p50 = append(c.p50, p50)
	c.p99 = append(c.p99, report.Quantile(latencies, 0.99))
	c.unit = append(c.unit, unit)
	c.p50Units = append(c.p50Units, p50/unit)
	c.perUnit = append(c.perUnit, rate*unit)
	return nil
}

// write appends with a number of writers until one limit is reached. It returns the
// seconds of each append.
func (m *run) write(name string, writers, limit int, d time.Duration) ([]float64, time.Duration, error) {
	e := m.open[name]
	compress := m.o.Compress && name != nameOurs
	var wg sync.WaitGroup
	all := make([][]float64, writers)
	errs := make([]error, writers)
	begin := time.Now()
	for w := range writers {
		wg.Go(func() {
			for n := w; n < limit && time.Since(begin) < d; n += writers {
				status := m.statuses[rand.IntN(len(m.statuses))]
				start := time.Now()
				if compress {
					status = s2.Encode(nil, status)
				}
				if err := e.append(event{m.uids[rand.IntN(pods)], status}); err != nil {
					errs[w] = err
					return
				}
				all[w] = append(all[w], time.Since(start).Seconds())
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...), time.Since(begin), errors.Join(errs...)
}

// report prints a table per number of writers, and the targets.
func (m *run) report(r *report.Report) {
	const micro = 1e6
	for _, writers := range m.o.Writers {
		s := r.Section(fmt.Sprintf("durable appends, %d writers", writers),
			"events/s", "p50 µs", "p99 µs", "unit µs", "p50 in units", "events per unit", "ours / this")
		for _, name := range m.o.Engines {
			c := m.cells[name][writers]
			s.Row(name, report.Median(c.rate), micro*report.Median(c.p50), micro*report.Median(c.p99), micro*report.Median(c.unit),
				report.Median(c.p50Units), report.Median(c.perUnit), m.ahead(name, writers))
		}
	}
	if !slices.Contains(m.o.Engines, nameOurs) {
		return
	}
	for _, writers := range m.o.Writers {
		c := m.cells[nameOurs][writers]
		switch writers {
		case 1:
			r.Target("append p50 in units, 1 writer", report.AtMost, 2.3, report.Median(c.p50Units))
			continue
		case 64:
			r.Target("events per unit, 64 writers", report.AtLeast, 14, report.Median(c.perUnit))
		case 256:
			r.Target("events per unit, 256 writers", report.AtLeast, 20, report.Median(c.perUnit))
		default:
			continue
		}
		for name, ratio := range map[string]float64{"pebble": 1, "sqlite": 1, "tidwall/wal": 1, "bbolt Batch": 6} {
			if slices.Contains(m.o.Engines, name) {
				r.Target(fmt.Sprintf("events/s beside %s, %d writers", name, writers), report.AtLeast, ratio, m.ahead(name, writers))
			}
		}
	}
}

// ahead is the median of the ratios, each from one round.
func (m *run) ahead(name string, writers int) float64 {
	own, other := m.cells[nameOurs][writers], m.cells[name][writers]
	if own == nil {
		return report.Median(nil)
	}
	ratios := make([]float64, len(other.rate))
	for i := range ratios {
		ratios[i] = own.rate[i] / other.rate[i]
	}
	return report.Median(ratios)
}
