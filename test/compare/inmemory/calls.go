// SPDX-License-Identifier: Apache-2.0

package inmemory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/sample"
	"github.com/statusstore/statusstore/test/compare/subject"
)

// Options tune a run.
type Options struct {
	// Dir is for the journals; what is made in it is removed.
	Dir    string
	Rounds int
	Slice  time.Duration // of each call in each round
	Pods   int
	Heap   int // pods of the measurement of memory
}

// cost is what one call takes.
type cost struct{ seconds, allocs, bytes float64 }

// measure calls for a time and returns the median time and the mean allocations.
func measure(d time.Duration, call func(n int) error) (cost, error) {
	var times []float64
	times = make([]float64, 0, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	n := 0
	for ; time.Since(begin) < d || n == 0; n++ {
		start := time.Now()
		err := call(n)
		took := time.Since(start)
		if err != nil {
			return cost{}, err
		}
		if len(times) < cap(times) { // appending more would count as allocations
			times = append(times, took.Seconds())
		}
	}
	runtime.ReadMemStats(&after)
	return cost{
		seconds: report.Median(times),
		allocs:  float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:   float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}

// bench has both managers and a journal, all with the same pods.
type bench struct {
	o     Options
	shape sample.Shape
	pods  []*v1.Pod
	// statuses of each pod that differ from each other
	statuses [][2]v1.PodStatus
	stock    *subject.Subject
	ours     *subject.Subject
	journal  *journal.Journal
	events   [][2]journal.Event // what ours appends
	// next goes on over the slices: a slice that began with the stored status
	// would not change anything.
	next map[string]int
}

func newBench(dir string, o Options, shape sample.Shape) (b *bench, err error) {
	b = &bench{o: o, shape: shape, next: map[string]int{}}
	for i := range o.Pods {
		p := shape.Pod("inmemory", "node", i)
		b.pods = append(b.pods, p)
		both := [2]v1.PodStatus{shape.Status(p, 1), shape.Status(p, 2)}
		b.statuses = append(b.statuses, both)
		var events [2]journal.Event
		for k := range both {
			encoded, err := podstatus.Encode(&both[k])
			if err != nil {
				return nil, err
			}
			events[k] = journal.Event{
				Kind: journal.KindSet, UID: p.UID, Namespace: p.Namespace, Name: p.Name, Reason: journal.ReasonSet,
				ContentType: journal.ContentTypeProtobuf, Status: encoded,
			}
		}
		b.events = append(b.events, events)
	}
	if b.journal, err = journal.Open(filepath.Join(dir, "alone.db"), journal.Options{}); err != nil {
		return nil, err
	}
	if b.ours, err = subject.Ours(nil, "", dir, b.pods); err != nil {
		return nil, errors.Join(err, b.journal.Close())
	}
	b.stock = subject.Stock(nil, b.pods)
	for i, p := range b.pods {
		b.stock.Set(p, b.statuses[i][0])
		b.ours.Set(p, b.statuses[i][0])
	}
	return b, nil
}

func (b *bench) close() error {
	return errors.Join(b.stock.Stop(), b.ours.Stop(), b.journal.Close())
}

// unchanged sets the status that is stored.
func (b *bench) unchanged(s *subject.Subject) func(int) error {
	return func(n int) error {
		i := n % len(b.pods)
		if _, changed := s.Manager.SetPodStatus(subject.NoLog, b.pods[i], b.statuses[i][0]); changed {
			return errors.New("an unchanged status was taken for a changed one")
		}
		return nil
	}
}

// changed sets the other one of two statuses each time.
func (b *bench) changed(name string, set func(i, variant int) error) func(int) error {
	return func(int) error {
		n := b.next[name]
		b.next[name]++
		return set(n%len(b.pods), (n/len(b.pods)+1)%2)
	}
}

func (b *bench) set(s *subject.Subject) func(i, variant int) error {
	return func(i, variant int) error {
		if _, changed := s.Manager.SetPodStatus(subject.NoLog, b.pods[i], b.statuses[i][variant]); !changed {
			return errors.New("a changed status was taken for an unchanged one")
		}
		return nil
	}
}

func (b *bench) append(i, variant int) error {
	_, err := b.journal.Append(context.Background(), b.events[i][variant])
	return err
}

// costs are one value per round and kind of call.
type costs map[string][]cost

func (c costs) median(name string, value func(cost) float64) float64 {
	var values []float64
	for _, one := range c[name] {
		values = append(values, value(one))
	}
	return report.Median(values)
}

func seconds(c cost) float64 { return c.seconds }
func allocs(c cost) float64  { return c.allocs }

// Calls measures SetPodStatus.
func Calls(r *report.Report, o Options) error {
	s := r.Section("SetPodStatus", "stock µs", "allocs", "ours µs", "allocs", "time ratio", "allocs ratio", "µs with commit", "allocs with commit")
	rows := *s
	for _, shape := range sample.Shapes {
		c, err := callsOf(o, shape)
		if err != nil {
			return fmt.Errorf("%s: %w", shape.Name, err)
		}
		row := func(what string, ours func(value func(cost) float64) float64, whole ...float64) (float64, float64) {
			const micro = 1e6
			st, sa := c.median("stock "+what, seconds), c.median("stock "+what, allocs)
			ot, oa := ours(seconds), ours(allocs)
			rows.Row(shape.Name+", "+what, append([]float64{micro * st, sa, micro * ot, oa, ot / st, oa / sa}, whole...)...)
			return ot / st, oa / sa
		}
		time1, allocs1 := row("unchanged", func(v func(cost) float64) float64 { return c.median("ours unchanged", v) })
		time2, allocs2 := row("changed", func(v func(cost) float64) float64 {
			return c.median("ours changed", v) - c.median("append", v)
		}, 1e6*c.median("ours changed", seconds), c.median("ours changed", allocs))
		r.Target("SetPodStatus unchanged, time beside stock, "+shape.Name, report.AtMost, 0.5, time1)
		r.Target("SetPodStatus unchanged, allocations beside stock, "+shape.Name, report.AtMost, 0.5, allocs1)
		r.Target("SetPodStatus changed but the commit, time beside stock, "+shape.Name, report.AtMost, 1.2, time2)
		r.Target("SetPodStatus changed but the commit, allocations beside stock, "+shape.Name, report.AtMost, 1.2, allocs2)
	}
	*s = rows
	return nil
}

func callsOf(o Options, shape sample.Shape) (c costs, err error) {
	dir, err := os.MkdirTemp(o.Dir, "compare-calls")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBench(dir, o, shape)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	c = costs{}
	for range o.Rounds {
		for _, what := range []struct {
			name string
			call func(int) error
		}{
			{"stock unchanged", b.unchanged(b.stock)},
			{"ours unchanged", b.unchanged(b.ours)},
		} {
			if err := c.add(o, what.name, what.call); err != nil {
				return nil, err
			}
		}
	}
	for range o.Rounds {
		for _, what := range []struct {
			name string
			set  func(i, variant int) error
		}{
			{"stock changed", b.set(b.stock)},
			{"ours changed", b.set(b.ours)},
			{"append", b.append},
		} {
			if err := c.add(o, what.name, b.changed(what.name, what.set)); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c costs) add(o Options, name string, call func(int) error) error {
	one, err := measure(o.Slice, call)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c[name] = append(c[name], one)
	return nil
}
