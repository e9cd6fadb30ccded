// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

const (
	pods    = 500
	writers = 64
	// life is how many statuses a pod has, at least, before another takes its place.
	life = 100
	// The file is at most that much larger than the records in it; what is beside
	// them is space in pages. docs/durability.md says so. Events that come one at a
	// time fill pages less well than those of many writers.
	fileFactorMany = 2
	fileFactorOne  = 3
)

// sample is what the file looks like at some time.
type sample struct {
	head  journal.Sequence
	stats journal.Stats
}

// TestG7_MillionsOfEvents appends with default retention until the end of a long
// life: the file reaches its size early and stays there. After a restart all is
// there, and a compaction at open leaves nothing out.
func TestG7_MillionsOfEvents(t *testing.T) {
	events := uint64(number(t, "STATUSSTORE_SOAK_EVENTS", 2_000_000))
	api, err := fakeapi.Listen(fakeapi.Options{RequestLog: 100, StatusLog: 2, EventWindow: 2000})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	slots := make([]*slot, pods)
	for i := range slots {
		slots[i] = newSlot(i)
	}
	on(t, api, slots...)
	dir := dir(t)
	// Slower than the writers by far, as API servers are: acks go on all the time.
	s := open(t, dir, api, 100, journal.Retention{})

	begin := time.Now()
	samples := s.write(events, slots, api)
	took := time.Since(begin)
	replaced := 0
	for _, p := range slots {
		replaced += p.generation - 1
	}
	acks, err := s.Journal().Acks()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s events of %d pods, %d of them replaced meanwhile, %d pods acked, in %v\n%s", commas(uint64(s.stats().Head)), pods, replaced, len(acks), took.Round(time.Second), table(samples))
	checkPlateau(t, samples)
	if len(acks) < pods/10 { // pods come and go faster than the server is told
		t.Errorf("only %d pods are acked: the server was not there", len(acks))
	}
	s.holds(slots)
	s.stop()

	before := verify(t, dir)
	begin = time.Now()
	s = open(t, dir, api, 0, journal.Retention{})
	opened := time.Since(begin)
	s.holds(slots)
	s.stop()
	t.Logf("restart: %d events verified, opened in %v", before.Events, opened.Round(time.Millisecond))

	// With less history most of the file is free, which the next open gives back.
	full := sizeOf(t, dir)
	for round := 0; ; round++ {
		s = open(t, dir, api, 0, journal.Retention{EventsPerPod: 2})
		s.holds(slots)
		for i := range 20 { // each commit trims a slice
			if err := s.set(t.Context(), slots[i]); err != nil {
				t.Fatal(err)
			}
		}
		live := s.stats()
		s.stop()
		if size := sizeOf(t, dir); size < full/2 {
			t.Logf("compaction at open: %.1f MiB before, %.1f MiB after, with %d events of %.1f MiB", float64(full)/mib, float64(size)/mib, live.Events, float64(live.EventBytes)/mib)
			break
		}
		if round == 5 {
			t.Fatalf("the file is not compacted: %d bytes, %+v", sizeOf(t, dir), live)
		}
	}
	verify(t, dir)
	s = open(t, dir, api, 0, journal.Retention{})
	s.holds(slots)
	s.stop()
}

// write has all slots written to until there were that many events.
func (s *store) write(events uint64, slots []*slot, api *fakeapi.Server) []sample {
	s.t.Helper()
	var over atomic.Bool
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for !over.Load() {
				for i := w; i < len(slots) && !over.Load(); i += writers {
					if err := s.step(slots[i], api); err != nil {
						s.t.Errorf("%s: %v", slots[i].pod.Name, err)
						over.Store(true)
					}
				}
			}
		})
	}
	var samples []sample
	const count = 40
	for next := events / count; !over.Load(); time.Sleep(10 * time.Millisecond) {
		head, _ := s.Journal().Head()
		if uint64(head) < next {
			continue
		}
		samples = append(samples, sample{head, s.stats()})
		next = uint64(head) + events/count
		over.Store(uint64(head) >= events)
	}
	group.Wait()
	return samples
}

// step is the next thing that happens to a slot.
func (s *store) step(p *slot, api *fakeapi.Server) error {
	// Not all end at the same time.
	if p.count < life+p.number/2 {
		return s.set(s.t.Context(), p)
	}
	if err := s.finish(s.t.Context(), p); err != nil {
		return err
	}
	if err := s.Remove(s.t.Context(), p.pod.UID, journal.ReasonDeleted); err != nil {
		return err
	}
	if err := api.Remove(p.pod.Namespace, p.pod.Name); err != nil {
		return err
	}
	p.renew()
	_, err := api.Put(p.pod)
	return err
}

func table(samples []sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s %10s %10s %10s %10s %8s %10s", "head", "events", "live MiB", "file MiB", "free MiB", "file/live", "tombstones")
	for i, s := range samples {
		if i%2 == 0 && i < len(samples)-1 {
			continue
		}
		fmt.Fprintf(&b, "\n%12s %10d %10.2f %10.2f %10.2f %8.2f %10d", commas(uint64(s.head)), s.stats.Events, float64(s.stats.EventBytes)/mib, float64(s.stats.FileBytes)/mib,
			float64(s.stats.FreeBytes)/mib, float64(s.stats.FileBytes)/float64(s.stats.EventBytes), s.stats.Tombstones)
	}
	return b.String()
}

// checkPlateau wants the file to stay as large as it is when there are as many
// removed pods as are remembered, which have a share in history, too, and never larger than the records in it, times fileFactorMany.
func checkPlateau(t *testing.T, samples []sample) {
	t.Helper()
	full := slices.IndexFunc(samples, func(s sample) bool { return s.stats.Tombstones > 1000 && s.head > 500_000 })
	if full < 0 || len(samples)-full < 3 {
		t.Fatalf("%d samples, full history at number %d: too few events", len(samples), full)
	}
	warm := samples[full]
	for _, s := range samples[full:] {
		if s.stats.FileBytes > fileFactorMany*int64(s.stats.EventBytes) {
			t.Errorf("at %d the file has %d bytes, %d are live", s.head, s.stats.FileBytes, s.stats.EventBytes)
		}
		if s.stats.FileBytes > warm.stats.FileBytes+warm.stats.FileBytes/4 {
			t.Errorf("at %d the file has %d bytes, at %d it had %d: it grows", s.head, s.stats.FileBytes, warm.head, warm.stats.FileBytes)
		}
	}
}
