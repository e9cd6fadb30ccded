// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: a thousand watches that always want to send get a quarter of the time,
// all of them the same, and one that seldom does never waits.
func TestTurns(t *testing.T) {
	const watches, cost = 1000, 200 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		took := make([]int, watches)
		var group sync.WaitGroup
		for i := range watches {
			group.Go(func() {
				for {
					turn, ok := s.wait(ctx)
					if !ok {
						return
					}
					time.Sleep(cost)
					s.done(turn)
					took[i]++
				}
			})
		}
		group.Wait()
		all := 0
		for i, n := range took {
			all += n
			if n < 8 || n > 14 {
				t.Fatalf("watch %d got %d turns of %d", i, n, watches)
			}
		}
		if used := time.Duration(all) * cost; used < 2*time.Second || used > 3*time.Second {
			t.Errorf("all turns took %v of 10 s, want a quarter", used)
		}
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			begin := time.Now()
			turn, ok := s.wait(t.Context())
			if waited := time.Since(begin); !ok || waited > 0 {
				t.Fatalf("one watch waited %v", waited)
			}
			time.Sleep(cost)
			s.done(turn)
		}
	})
}

// TestTurns_Stuck: a watch whose client does not read holds up nobody for long.
func TestTurns_Stuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTurns()
		stuck, _ := s.wait(t.Context())
		for range 100 {
			time.Sleep(time.Millisecond)
			begin := time.Now()
			turn, ok := s.wait(t.Context())
			if waited := time.Since(begin); !ok || waited > 0 {
				t.Fatalf("waited %v", waited)
			}
			s.done(turn)
		}
		time.Sleep(30 * time.Second)
		s.done(stuck)
		begin := time.Now()
		if _, ok := s.wait(t.Context()); !ok || time.Since(begin) > turnMost {
			t.Errorf("waited %v for a stuck one, want at most %v", time.Since(begin), turnMost)
		}
	})
}
