// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/syncer"
)

const (
	// recordLanes is how many pods are journalled at the same time: each lane waits
	// for the disk, and the journal commits them together.
	recordLanes = 16
	laneBuffer  = 64
	// retryWait bounds how long a lane waits for a disk that refuses writes.
	retryWait    = 100 * time.Millisecond
	retryWaitMax = 5 * time.Second
)

// recorder journals what the API server shows (record mode). Changes of one pod
// are journalled in order, each of them: a lane that is full holds up the watch.
type recorder struct {
	m       *manager.Manager
	live    *syncer.LivePods
	lanes   [recordLanes]chan seen
	seed    maphash.Seed
	pass    time.Duration // between looks at all pods
	metrics *httpapi.Metrics
	log     *slog.Logger

	mu   sync.Mutex
	loud time.Time // guarded by mu: the last line about a failure
}

// seen is a change that the watch showed.
type seen struct {
	pod  *v1.Pod
	gone bool
}

func newRecorder(m *manager.Manager, live *syncer.LivePods, c Config, metrics *httpapi.Metrics) *recorder {
	r := &recorder{m: m, live: live, seed: maphash.MakeSeed(), pass: c.PassInterval, metrics: metrics, log: c.Logger}
	for i := range r.lanes {
		r.lanes[i] = make(chan seen, laneBuffer)
	}
	return r
}

// run watches and journals until the context ends.
func (r *recorder) run(ctx context.Context) error {
	r.live.OnChange(func(old, new *v1.Pod) {
		if old != nil && (new == nil || new.UID != old.UID) {
			r.put(ctx, seen{old, true})
		}
		if new != nil {
			r.put(ctx, seen{new, false})
		}
	})
	group, ctx := errgroup.WithContext(ctx)
	for _, lane := range r.lanes {
		group.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case s := <-lane:
					r.record(ctx, s)
				}
			}
		})
	}
	group.Go(func() error { return r.live.Run(ctx) })
	group.Go(func() error { r.removeMissed(ctx, r.live); return nil })
	return group.Wait()
}

// put hands a change to the lane of its pod.
func (r *recorder) put(ctx context.Context, s seen) {
	lane := r.lanes[maphash.String(r.seed, string(s.pod.UID))%recordLanes]
	select {
	case lane <- s:
	case <-ctx.Done():
	}
}

// record journals a change; while the disk refuses it, again and again.
func (r *recorder) record(ctx context.Context, s seen) {
	for wait := retryWait; ; wait = min(2*wait, retryWaitMax) {
		begin := time.Now()
		changed := s.gone
		var err error
		if s.gone {
			err = r.m.Remove(ctx, s.pod.UID, journal.ReasonDeleted)
		} else {
			var change manager.Change
			change, err = r.m.Observe(ctx, s.pod)
			changed = change.Changed
		}
		r.metrics.Written(changed, err, time.Since(begin))
		if err == nil || ctx.Err() != nil {
			return
		}
		r.complain(s.pod, err)
		if !errors.Is(err, journal.ErrDegraded) {
			return
		}
		r.metrics.RecordRetry()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// complain logs at most once per 30 s.
func (r *recorder) complain(pod *v1.Pod, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.loud) < 30*time.Second {
		return
	}
	r.loud = time.Now()
	r.log.Warn("cannot journal a status", logkey.Namespace, pod.Namespace, logkey.Name, pod.Name, logkey.UID, pod.UID, logkey.Err, err)
}

// lookout is what the recorder asks of the watch.
type lookout interface {
	Synced() <-chan struct{}
	LastError() (string, time.Time)
	List() []*v1.Pod
}

// removeMissed removes, once, pods that were deleted while the agent was away. A
// pod is gone when a complete LIST lacks it; after an unclean stop also a pass
// later, and with the API server still answering.
func (r *recorder) removeMissed(ctx context.Context, live lookout) {
	before := r.m.Entries()
	select {
	case <-ctx.Done():
		return
	case <-live.Synced():
	}
	for again := r.m.Status().UncleanStart; again; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.pass):
		}
		failure, _ := live.LastError()
		again = failure != ""
	}
	there := make(map[types.UID]bool)
	for _, pod := range live.List() {
		there[pod.UID] = true
	}
	for _, e := range before {
		if !there[e.UID] {
			pod := &v1.Pod{}
			pod.Namespace, pod.Name, pod.UID = e.Namespace, e.Name, e.UID
			r.put(ctx, seen{pod, true})
		}
	}
}
