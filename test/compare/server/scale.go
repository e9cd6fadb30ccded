// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/test/compare/report"
)

// ScaleOptions tune Scale.
type ScaleOptions struct {
	Launcher string
	Source   string // folder of the module that has cmd/statusstore
	Pods     []int  // rising; the others are compared to the first
	Changed  int    // of each 100 pods, before the second restart
}

// scaled is what one size took.
type scaled struct {
	burst, restart, changed float64 // seconds
	afterBurst              resident
	afterRestart            resident
}

// Scale measures the agent with few and with many pods in one process.
func Scale(ctx context.Context, r *report.Report, o ScaleOptions) (err error) {
	silence()
	dir, err := os.MkdirTemp("", "compare-scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := buildAgent(ctx, o.Source, dir)
	if err != nil {
		return err
	}
	p, err := startPlane(ctx, o.Launcher)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	s := r.Section("the agent by number of pods", "burst s", "ms per pod", "restart s", "ms per pod", "restart, changed s", "RSS MiB after burst", "of it files", "peak", "after restart")
	var first scaled
	for i, pods := range o.Pods {
		got, err := scaleOf(ctx, p, program, o, pods)
		if err != nil {
			return fmt.Errorf("%d pods: %w", pods, err)
		}
		n := float64(pods)
		s.Row(fmt.Sprint(pods, " pods"), got.burst, 1e3*got.burst/n, got.restart, 1e3*got.restart/n, got.changed, got.afterBurst.all, got.afterBurst.file, got.afterBurst.peak, got.afterRestart.all)
		if i == 0 {
			first = got
		} else {
			base := float64(o.Pods[0])
			about := fmt.Sprintf(" per pod, %d pods beside %d", pods, o.Pods[0])
			r.Target("burst, time"+about, report.AtMost, 1.3, (got.burst/n)/(first.burst/base))
			r.Target("restart, time"+about, report.AtMost, 1.3, (got.restart/n)/(first.restart/base))
		}
		switch pods {
		case 500:
			r.Target("RSS MiB, 500 pods", report.AtMost, 60, max(got.afterBurst.all, got.afterRestart.all))
		case 10_000:
			r.Target("RSS MiB, 10,000 pods", report.AtMost, 250, max(got.afterBurst.all, got.afterRestart.all))
		}
	}
	return nil
}

func scaleOf(ctx context.Context, p *plane, program string, o ScaleOptions, pods int) (got scaled, err error) {
	w, err := newWorld(ctx, p, pods)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	dir := w.dir
	run := func(do func(*agent) error) error {
		a, err := startAgent(ctx, program, dir, w.node, p.kubeconfig())
		if err != nil {
			return err
		}
		return errors.Join(do(a), a.kill())
	}
	err = run(func(a *agent) error {
		begin := time.Now()
		if err := w.put(ctx, a, same(0)); err != nil {
			return err
		}
		last, err := w.wait(ctx, same(0))
		if err != nil {
			return err
		}
		got.burst = last.Sub(begin).Seconds()
		if err := a.acked(ctx, pods); err != nil {
			return err
		}
		got.afterBurst, err = a.memory()
		time.Sleep(2 * time.Second) // so that the acks are durable
		return err
	})
	if err != nil {
		return got, err
	}
	// One pod has changed, so that the end of the restart is seen on the server.
	for _, again := range []struct {
		changed int
		seconds *float64
		version int32
	}{{1, &got.restart, 1}, {max(1, pods*o.Changed/100), &got.changed, 2}} {
		versions := make([]int32, pods)
		for i := range versions {
			versions[i] = w.version(i)
			if i < again.changed {
				versions[i] = again.version
			}
		}
		if err := w.whileAway(ctx, program, dir, again.changed, again.version); err != nil {
			return got, err
		}
		begin := time.Now()
		err := run(func(a *agent) error {
			last, err := w.wait(ctx, func(i int) int32 { return versions[i] })
			if err != nil {
				return err
			}
			*again.seconds = last.Sub(begin).Seconds()
			if err := a.acked(ctx, pods); err != nil {
				return err
			}
			got.afterRestart, err = a.memory()
			time.Sleep(2 * time.Second)
			return err
		})
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// version is what the server shows of a pod.
func (w *world) version(i int) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown[w.pods[i].UID]
}

// whileAway sets the status of the first pods at an agent that reaches no server.
func (w *world) whileAway(ctx context.Context, program, dir string, changed int, version int32) (err error) {
	a, err := startAgent(ctx, program, dir, w.node, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.kill()) }()
	return w.putSome(ctx, a, changed, same(version))
}

// put sets the status of each pod over the agent's socket.
func (w *world) put(ctx context.Context, a *agent, version func(i int) int32) error {
	return w.putSome(ctx, a, len(w.pods), version)
}

func (w *world) putSome(ctx context.Context, a *agent, pods int, version func(i int) int32) error {
	var g errgroup.Group
	g.SetLimit(64)
	for i, p := range w.pods[:pods] {
		g.Go(func() error {
			with := p.DeepCopy()
			with.Status = shape.Status(p, int(version(i)))
			_, err := a.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, with, metav1.UpdateOptions{})
			return err
		})
	}
	return g.Wait()
}
