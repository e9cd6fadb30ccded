// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// benchStatus is about the size and compressibility of the protobuf of a
// status with three containers and six conditions.
func benchStatus(i int) []byte {
	b := make([]byte, 0, 1500)
	for c := range 3 {
		b = fmt.Appendf(b, "container-%d example.invalid/image-%d:1 containerd://%064x sha256:%064x running %d restarts %d ",
			c, c, i*7+c, i*13+c, i, i%5)
	}
	for c := range 6 {
		b = fmt.Appendf(b, "condition type-%d True LastTransitionTime %d reason message message message ", c, i)
	}
	for len(b) < 1450 {
		b = append(b, byte(rand.IntN(256)))
	}
	return b
}

// BenchmarkAppend: durable events of 500 pods, retention and acks included, at
// 1 to 256 writers. The unit is one pwrite + fdatasync of 4 KiB on the same file
// system, measured between the appends of the same run:
//
//	units/op     an append's p50 in units
//	events/unit  events made durable in one unit
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(writers, "writers"), func(b *testing.B) {
			dir := b.TempDir()
			unit := newRawDisk(b, dir)
			j, err := Open(filepath.Join(dir, FileName), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			statuses := make([][]byte, 64)
			for i := range statuses {
				statuses[i] = benchStatus(i)
			}
			// Past the first trim, so that it is part of what is measured.
			fill := make([]Event, 500)
			for round := range 45 {
				for i := range fill {
					fill[i] = set(types.UID(fmt.Sprintf("%036d", i)), "")
					fill[i].Status = statuses[(i+round)%64]
				}
				if _, err := j.Append(b.Context(), fill...); err != nil {
					b.Fatal(err)
				}
			}
			var latencies []time.Duration
			var mu sync.Mutex
			var busy time.Duration
			// In slices, so that the unit is measured under the same conditions.
			const slice = 100 * time.Millisecond
			var done atomic.Int64
			b.ResetTimer()
			for done.Load() < int64(b.N) {
				unit.measure(20)
				start := time.Now()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						var own []time.Duration
						for time.Since(start) < slice && done.Add(1) <= int64(b.N) {
							e := set(types.UID(fmt.Sprintf("%036d", rand.IntN(500))), "")
							e.Status = statuses[rand.IntN(64)]
							t0 := time.Now()
							got, err := j.Append(b.Context(), e)
							if err != nil {
								b.Error(err)
								return
							}
							own = append(own, time.Since(t0))
							j.PutAck(Ack{UID: e.UID, LiveUID: e.UID, Version: got[0].Version, Time: t0})
						}
						mu.Lock()
						latencies = append(latencies, own...)
						mu.Unlock()
						_ = w
					})
				}
				wg.Wait()
				busy += time.Since(start)
			}
			b.StopTimer()
			slices.Sort(latencies)
			p50, p99 := latencies[len(latencies)/2], latencies[len(latencies)*99/100]
			u := unit.p50()
			b.ReportMetric(float64(p50)/float64(u), "units/op")
			b.ReportMetric(float64(len(latencies))/(float64(busy)/float64(u)), "events/unit")
			b.ReportMetric(float64(len(latencies))/busy.Seconds(), "events/s")
			b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
			b.ReportMetric(float64(u.Microseconds()), "unit-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rawDisk times one pwrite + fdatasync of 4 KiB into a preallocated file.
type rawDisk struct {
	b     *testing.B
	f     *os.File
	at    int64
	times []time.Duration
}

const rawBytes = 64 << 20

func newRawDisk(b *testing.B, dir string) *rawDisk {
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	for range rawBytes >> 20 {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	return &rawDisk{b: b, f: f}
}

func (r *rawDisk) measure(n int) {
	page := make([]byte, 4096)
	for range n {
		page[0]++
		t0 := time.Now()
		if _, err := r.f.WriteAt(page, r.at%rawBytes); err != nil {
			r.b.Fatal(err)
		}
		if err := unix.Fdatasync(int(r.f.Fd())); err != nil {
			r.b.Fatal(err)
		}
		r.times = append(r.times, time.Since(t0))
		r.at += 4096
	}
}

func (r *rawDisk) p50() time.Duration {
	slices.Sort(r.times)
	return r.times[len(r.times)/2]
}

// BenchmarkOpen: opening for reading and for writing must not depend on how
// much history there is.
func BenchmarkOpen(b *testing.B) {
	for _, pods := range []int{500, 10000} {
		for _, events := range []int{1_000, 100_000} {
			if events < pods {
				events = pods
			}
			b.Run(fmt.Sprintf("%dpods/%devents", pods, events), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), FileName)
				o := Options{Retention: Retention{MaxEvents: 2 * events, MaxBytes: 4 << 30}}
				j, err := Open(path, o)
				if err != nil {
					b.Fatal(err)
				}
				batch := make([]Event, 0, 500)
				for i := 0; i < events; {
					for batch = batch[:0]; len(batch) < cap(batch) && i < events; i++ {
						e := set(types.UID(fmt.Sprintf("%036d", i%pods)), "")
						e.Status = benchStatus(i % 1000)
						batch = append(batch, e)
					}
					if _, err := j.Append(b.Context(), batch...); err != nil {
						b.Fatal(err)
					}
				}
				j.Close()
				for b.Loop() {
					j, err := Open(path, o)
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if err := j.Close(); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkReplay: all events read, checked and decoded.
func BenchmarkReplay(b *testing.B) {
	path := filepath.Join(b.TempDir(), FileName)
	j, err := Open(path, Options{Retention: Retention{MaxEvents: 1 << 30, MaxBytes: 4 << 30}})
	if err != nil {
		b.Fatal(err)
	}
	const n = 100_000
	batch := make([]Event, 1000)
	for i := 0; i < n; i += len(batch) {
		for k := range batch {
			batch[k] = set(types.UID(fmt.Sprintf("%036d", k%500)), "")
			batch[k].Status = benchStatus(i + k)
		}
		if _, err := j.Append(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	for b.Loop() {
		count := 0
		for _, err := range r.Events(1, 0) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		if count != n+1 {
			b.Fatal(count)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
