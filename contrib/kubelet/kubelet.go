// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

// Manager is the kubelet's status manager on a durable store. All methods may be
// called concurrently.
type Manager struct {
	store *manager.Manager
	log   klog.Logger // for calls without a logger

	pods      *podLookup
	notifiers notifiers
	startup   startup
	resizes   resizes

	running sync.WaitGroup // what Start started
	// mu guards the fields below.
	mu     sync.Mutex
	stop   context.CancelFunc // nil before Start
	closed bool
}

var _ status.Manager = (*Manager)(nil)

// New opens the journal and loads each pod's newest status; see manager.Open for
// the errors. It starts no goroutine. Close the result when done.
func New(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{log: o.Logger, pods: newPodLookup(o.Pods)}
	m.notifiers = notifiers{pods: m.pods, log: m.log, hook: o.Store.Hooks.Notify}
	m.startup = startup{helper: o.StartupLatency, log: m.log, pods: m.pods, next: o.Store.Sync.Observer, entry: m.entry}
	m.resizes = resizes{pods: m.pods, conditions: m.conditions}

	store := o.Store
	store.Pods, store.Runtime = m.pods, o.DeletionSafety
	store.Sync.Observer = &m.startup
	store.Hooks.Notify = m.notifiers.notify
	store.Hooks.ContainerTerminated = func(uid types.UID, t podstatus.Termination) {
		countTermination(t)
		if hook := o.Store.Hooks.ContainerTerminated; hook != nil {
			hook(uid, t)
		}
	}
	store.Hooks.ResizeEnded = func(uid types.UID, outcome manager.ResizeOutcome, waited time.Duration) {
		m.resizes.hook(outcome, waited)
		if hook := o.Store.Hooks.ResizeEnded; hook != nil {
			hook(uid, outcome, waited)
		}
	}
	if m.store, err = manager.Open(store); err != nil {
		return nil, err
	}
	for _, e := range m.store.Entries() {
		m.startup.knows(e)
		m.resizes.touched(e.UID)
	}
	m.resizes.observe()
	return m, nil
}

// Start brings the statuses to the API server until ctx ends or Close is called;
// it returns at once. The second and later calls do nothing.
func (m *Manager) Start(ctx context.Context) {
	logger := klog.FromContext(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop != nil || m.closed {
		logger.Info("Status manager was started before or is closed, not starting it")
		return
	}
	if !m.store.Status().Syncing {
		logger.Info("Status manager has no client, statuses stay on this node")
	}
	ctx, m.stop = context.WithCancel(ctx)
	changes := m.store.Watch() // before the syncer may drop anything
	m.running.Go(func() {
		defer changes.Stop()
		for {
			select {
			case <-changes.C:
				for _, uid := range changes.Take() {
					m.forgetIfGone(uid)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	m.running.Go(func() {
		if err := m.store.Run(ctx); err != nil {
			logger.Error(err, "Status manager stopped, statuses are neither stored nor sent any more")
		}
	})
}

// Close ends what Start started, waits for it and closes the journal. Later calls
// log an error and change nothing; reads still answer. It may be called more than
// once.
func (m *Manager) Close() error {
	m.mu.Lock()
	m.closed = true
	stop := m.stop
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	m.running.Wait()
	return m.store.Close()
}

// Store returns the manager below, for all that the stock interface lacks: errors,
// history, Drain, SyncOnce, Wake, Status, Failed.
func (m *Manager) Store() *manager.Manager { return m.store }

// forgetIfGone drops what is kept about a pod that has no status any more.
func (m *Manager) forgetIfGone(uid types.UID) {
	if _, ok := m.store.Entry(uid); ok {
		return
	}
	m.pods.forget(uid)
	m.startup.forget(uid)
	m.resizes.observe()
}
