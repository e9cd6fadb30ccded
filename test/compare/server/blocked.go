// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/statusstore/statusstore/test/compare/report"
)

// stream is a steady stream of changes.
type stream struct {
	perSecond int
	lasts     time.Duration
	patience  time.Duration // for the last ones to become visible
}

// latencies is what a stream of changes saw.
type latencies struct {
	p50, p99 float64 // seconds from accepted to visible
	changes  int
	missing  int // never visible within the patience
}

// stream makes changes pod by pod and measures how long each takes from the return
// of the call until it is visible. With hang, all requests about the first pod,
// which has something to say first, hang for good.
func (w *world) stream(ctx context.Context, which side, l limit, f stream, hang bool) (out latencies, err error) {
	hung := ""
	if hang {
		hung = w.pods[0].Name
	}
	c := newCounter(hung)
	s, err := w.start(which, l, c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, w.stop(s)) }()
	var wg sync.WaitGroup
	defer wg.Wait()
	s.Set(w.pods[0], shape.Status(w.pods[0], 1))
	accepted := make(map[seen]time.Time)
	var mu sync.Mutex
	ticker := time.NewTicker(time.Second / time.Duration(f.perSecond))
	defer ticker.Stop()
	begin := time.Now()
	for n := 0; time.Since(begin) < f.lasts; n++ {
		i := 1 + n%(len(w.pods)-1)
		version := n/(len(w.pods)-1) + 1
		wg.Go(func() {
			p := w.pods[i]
			s.Set(p, shape.Status(p, version))
			mu.Lock()
			defer mu.Unlock()
			accepted[seen{p.UID, int32(version)}] = time.Now()
		})
		select {
		case <-ctx.Done():
			return out, context.Cause(ctx)
		case <-ticker.C:
		}
	}
	wg.Wait()
	deadline := time.Now().Add(f.patience)
	var took []float64
	for {
		took, out.missing = w.compare(accepted)
		if out.missing == 0 || time.Now().After(deadline) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	out.changes = len(accepted)
	out.p50, out.p99 = report.Median(took), report.Quantile(took, 0.99)
	return out, nil
}

// compare returns the seconds from accepted to visible. A version that a newer one
// of its pod replaced was visible no later than that.
func (w *world) compare(accepted map[seen]time.Time) (took []float64, missing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for v, since := range accepted {
		at, ok := w.at[v]
		if !ok && w.shown[v.uid] > v.version {
			for newer := v.version + 1; !ok && newer <= w.shown[v.uid]; newer++ {
				at, ok = w.at[seen{v.uid, newer}]
			}
		}
		if !ok {
			missing++
			continue
		}
		took = append(took, max(0, at.Sub(since).Seconds()))
	}
	return took, missing
}
