// SPDX-License-Identifier: Apache-2.0

package inmemory

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/sample"
	"github.com/statusstore/statusstore/test/compare/subject"
)

const readWriters = 64

// Reads measures GetPodStatus of an idle store and beside 64 writers.
func Reads(r *report.Report, o Options) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "compare-reads")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBench(dir, o, sample.Two)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	s := r.Section("GetPodStatus", "idle p50 µs", "idle p99 µs", "64 writers p50 µs", "64 writers p99 µs", "p99 ratio")
	for _, one := range []struct {
		name    string
		subject *subject.Subject
	}{{"stock", b.stock}, {"ours", b.ours}} {
		var values [5][]float64
		for range o.Rounds {
			idle := b.read(one.subject, 0)
			busy := b.read(one.subject, readWriters)
			i99, b99 := report.Quantile(idle, 0.99), report.Quantile(busy, 0.99)
			for i, v := range []float64{1e6 * report.Median(idle), 1e6 * i99, 1e6 * report.Median(busy), 1e6 * b99, b99 / i99} {
				values[i] = append(values[i], v)
			}
		}
		row := make([]float64, len(values))
		for i := range values {
			row[i] = report.Median(values[i])
		}
		s.Row(one.name, row...)
		if one.subject == b.ours {
			r.Target("GetPodStatus p99 with 64 writers beside idle", report.AtMost, 2, row[4])
		}
	}
	return nil
}

// read returns the seconds of each call of one reader.
func (b *bench) read(s *subject.Subject, writers int) []float64 {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				i := (w + n*writers) % len(b.pods)
				s.Set(b.pods[i], b.statuses[i][n%2])
			}
		})
	}
	var times []float64
	begin := time.Now()
	for n := 0; time.Since(begin) < b.o.Slice; n++ {
		start := time.Now()
		s.Manager.GetPodStatus(b.pods[n%len(b.pods)].UID)
		times = append(times, time.Since(start).Seconds())
	}
	stop.Store(true)
	wg.Wait()
	return times
}

// Memory measures the heap that a manager keeps per pod.
func Memory(r *report.Report, o Options) error {
	s := r.Section("heap that stays, per pod", "stock KiB", "ours KiB", "ratio")
	for _, shape := range sample.Shapes {
		kept, err := memoryOf(o, shape)
		if err != nil {
			return err
		}
		s.Row(shape.Name, kept[0]/1024, kept[1]/1024, kept[1]/kept[0])
	}
	return nil
}

func memoryOf(o Options, shape sample.Shape) (kept [2]float64, err error) {
	dir, err := os.MkdirTemp(o.Dir, "compare-memory")
	if err != nil {
		return kept, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pods := make([]*v1.Pod, o.Heap)
	for i := range pods {
		pods[i] = shape.Pod("memory", "node", i)
	}
	for k, make := range []func() (*subject.Subject, error){
		func() (*subject.Subject, error) { return subject.Stock(nil, pods), nil },
		func() (*subject.Subject, error) { return subject.Ours(nil, "", dir, pods) },
	} {
		before := heap()
		m, err := make()
		if err != nil {
			return kept, err
		}
		var wg sync.WaitGroup
		for _, p := range pods { // at once, so that ours shares commits
			wg.Go(func() { m.Set(p, shape.Status(p, 1)) })
		}
		wg.Wait()
		kept[k] = (heap() - before) / float64(len(pods))
		if err := m.Stop(); err != nil {
			return kept, err
		}
		runtime.KeepAlive(m)
	}
	return kept, nil
}

// heap is what is in use after a collection.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
