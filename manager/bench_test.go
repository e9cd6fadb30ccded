// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func embedded(p *v1.Pod) func(*Options) {
	return func(o *Options) { o.Pods = fakePods{pods: []*v1.Pod{p}} }
}

func BenchmarkSetPodStatusUnchanged(b *testing.B) {
	p := pod()
	for name, source := range map[string]func(*Options){"embedded": embedded(p), "own-lookup": func(*Options) {}} {
		b.Run(name, func(b *testing.B) {
			s := open(b, source)
			given := runningReady()
			s.set(p, given)
			b.ReportAllocs()
			for b.Loop() {
				if c, err := s.SetPodStatus(contextWithoutEnd, p, given); err != nil || c.Changed {
					b.Fatal(c, err)
				}
			}
		})
	}
}

func BenchmarkSetPodStatusChanged(b *testing.B) {
	s := open(b)
	p := pod()
	given := []v1.PodStatus{runningReady(), runningReady(text("other"))}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if c, err := s.SetPodStatus(contextWithoutEnd, p, given[i%2]); err != nil || !c.Changed {
			b.Fatal(c, err)
		}
	}
}

func BenchmarkSetPodStatusChangedParallel(b *testing.B) {
	s := open(b)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		p := pod(number(int(n.Add(1))))
		given := []v1.PodStatus{runningReady(), runningReady(text("other"))}
		for i := 0; pb.Next(); i++ {
			if c, err := s.SetPodStatus(contextWithoutEnd, p, given[i%2]); err != nil || !c.Changed {
				b.Error(c, err)
				return
			}
		}
	})
}

func BenchmarkGetPodStatus(b *testing.B) {
	s := open(b)
	for i := range 500 {
		s.set(pod(number(i)), runningReady())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.GetPodStatus("uid-250"); !ok {
			b.Fatal("not there")
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s := open(b)
	for i := range 500 {
		s.set(pod(number(i)), runningReady(text(fmt.Sprint(i))))
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.open()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
