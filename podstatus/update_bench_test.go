// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
)

// The budget of an unchanged update with two containers and five conditions. One
// deep copy of such a status is most of it.
const unchangedAllocs = 55

func TestComputeUnchanged_Allocations(t *testing.T) {
	pod, next := newPod(), fullStatus()
	stored := mustCompute(t, Update{Pod: pod, Status: next, Now: noon}).Status
	u := Update{Pod: pod, Status: next, Previous: stored, Cached: true, Now: noon}
	got := testing.AllocsPerRun(100, func() {
		if r, err := Compute(u); err != nil || r.Changed {
			t.Fatalf("Compute = %+v, %v; want unchanged", r, err)
		}
	})
	if got > unchangedAllocs {
		t.Errorf("an unchanged update allocates %v times, want at most %d", got, unchangedAllocs)
	}
	got = testing.AllocsPerRun(100, func() {
		if !Unchanged(u) {
			t.Fatal("Unchanged = false")
		}
	})
	if got > 0 {
		t.Errorf("Unchanged allocates %v times, want none", got)
	}
}

func BenchmarkCompute(b *testing.B) {
	pod, same := newPod(), fullStatus()
	changed := fullStatus()
	changed.ContainerStatuses[1].RestartCount++
	first, err := Compute(Update{Pod: pod, Status: same, Now: noon})
	if err != nil {
		b.Fatal(err)
	}
	for name, next := range map[string]Update{
		"unchanged": {Pod: pod, Status: same, Previous: first.Status, Cached: true, Now: noon},
		"changed":   {Pod: pod, Status: changed, Previous: first.Status, Cached: true, Now: noon},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compute(next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnchanged(b *testing.B) {
	pod, next := newPod(), fullStatus()
	first, err := Compute(Update{Pod: pod, Status: next, Now: noon})
	if err != nil {
		b.Fatal(err)
	}
	u := Update{Pod: pod, Status: next, Previous: first.Status, Cached: true, Now: noon}
	b.ReportAllocs()
	for b.Loop() {
		if !Unchanged(u) {
			b.Fatal("changed")
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	x, y := fullStatus(), fullStatus()
	b.ReportAllocs()
	for b.Loop() {
		if !Equal(x, y) {
			b.Fatal("not equal")
		}
	}
}

func BenchmarkDeepCopy(b *testing.B) {
	x := fullStatus()
	b.ReportAllocs()
	for b.Loop() {
		x.DeepCopy()
	}
}

func BenchmarkCodec(b *testing.B) {
	s := fullStatus()
	raw, err := Encode(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Encode(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMergeLive(b *testing.B) {
	live, desired := fullStatus(), fullStatus()
	b.ReportAllocs()
	for b.Loop() {
		MergeLive(Merge{Live: live, Desired: desired, Now: noon})
	}
}
