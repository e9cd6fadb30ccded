// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// result is one measurement of one side.
type result struct {
	seconds  float64
	cpu      cpu
	requests map[string]int
}

// burst sets the first status of all pods at once. It is over when all are visible.
func (w *world) burst(ctx context.Context, which side, l limit) (r result, err error) {
	c := newCounter("")
	s, err := w.start(which, l, c)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.stop(s)) }()
	if which == ours {
		// A kubelet's manager has started long before the pods have.
		if err := c.listed(ctx); err != nil {
			return r, err
		}
	}
	used := w.plane.cpu()
	begin := time.Now()
	w.setAll(s, same(0))
	last, err := w.wait(ctx, same(0))
	if err != nil {
		return r, fmt.Errorf("burst: %w", err)
	}
	r.seconds, r.cpu = last.Sub(begin).Seconds(), w.plane.cpu().minus(used)
	// A status can be visible before its own PATCH is answered.
	_, err = c.quiet(ctx, begin, 200*time.Millisecond)
	r.requests = c.snapshot()
	return r, err
}

// listed waits for the first LIST's answer.
func (c *counter) listed(ctx context.Context) error {
	for {
		if n := c.snapshot(); n["WATCH"] > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the first WATCH: %w", context.Cause(ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// restart begins a subject anew that is told the status of each pod, as all
// workers do after a start. It is over when the last request is answered and all
// calls have returned.
func (w *world) restart(ctx context.Context, which side, l limit, settle time.Duration, version func(i int) int32) (r result, err error) {
	if err := w.refresh(ctx); err != nil {
		return r, err
	}
	c := newCounter("")
	used := w.plane.cpu()
	begin := time.Now()
	s, err := w.start(which, l, c)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.stop(s)) }()
	w.setAll(s, version)
	returned := time.Now()
	last, err := c.quiet(ctx, begin, settle)
	if err != nil {
		return r, fmt.Errorf("restart: %w", err)
	}
	if _, err := w.wait(ctx, version); err != nil {
		return r, fmt.Errorf("restart: %w", err)
	}
	if returned.After(last) {
		last = returned
	}
	r.seconds, r.cpu, r.requests = last.Sub(begin).Seconds(), w.plane.cpu().minus(used), c.snapshot()
	return r, nil
}

// outcome of an outage.
type outage struct {
	away     float64        // seconds without a server
	during   map[string]int // requests sent meanwhile
	converge float64        // seconds from the server's return
	after    map[string]int
	back     int // pods that were seen to go back to an older status
	accepted float64
}

// outage cuts the cable, makes changes, and joins the cable again.
func (w *world) outage(ctx context.Context, which side, l limit, changes int, away time.Duration) (o outage, err error) {
	c := newCounter("")
	s, err := w.start(which, l, c)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, w.stop(s)) }()
	w.setAll(s, same(0))
	if _, err := w.wait(ctx, same(0)); err != nil {
		return o, fmt.Errorf("before the outage: %w", err)
	}
	if _, err := c.quiet(ctx, time.Now(), time.Second); err != nil {
		return o, err
	}
	w.mu.Lock()
	w.steps = 0
	w.mu.Unlock()
	before := c.snapshot()
	cut := time.Now()
	w.cable.cut()
	each := changes / len(w.pods)
	for version := range each {
		w.setAll(s, same(int32(version+1)))
	}
	o.accepted = time.Since(cut).Seconds()
	select {
	case <-ctx.Done():
		return o, context.Cause(ctx)
	case <-time.After(away - time.Since(cut)):
	}
	middle := c.snapshot()
	o.during = minus(middle, before)
	o.away = time.Since(cut).Seconds()
	if err := w.cable.join(); err != nil {
		return o, err
	}
	begin := time.Now()
	last, err := w.wait(ctx, same(int32(each)))
	if err != nil {
		return o, fmt.Errorf("after the outage: %w", err)
	}
	o.converge = last.Sub(begin).Seconds()
	if _, err := c.quiet(ctx, begin, time.Second); err != nil {
		return o, err
	}
	o.after = minus(c.snapshot(), middle)
	w.mu.Lock()
	defer w.mu.Unlock()
	o.back = w.steps
	return o, nil
}
