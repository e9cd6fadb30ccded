// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
	"github.com/statusstore/statusstore/syncer"
)

// Manager is a durable pod status manager. All methods may be called
// concurrently.
type Manager struct {
	opts       Options
	log        *slog.Logger
	journal    *journal.Journal
	projection *projection.Projection
	pods       PodLookup
	memory     *podMemory // nil: pods are not remembered
	live       *syncer.LivePods
	syncer     *syncer.Syncer // nil without a client

	locks      *podLocks
	resizes    *resizeSlots
	rejections rejections
	notifier   notifier
	ran        atomic.Bool

	// closing is set before life is locked, so that nobody who only asks waits for
	// commits in flight.
	closing atomic.Bool
	// life is read-locked by each call that may write, until its end, and locked to
	// close the journal.
	life sync.RWMutex
}

// Open opens the journal, creating it if there is none, and loads the newest state
// of each pod. It starts no goroutine and sends nothing; Run does. On an error
// nothing stays open.
//
// Errors: *InvalidError for options; those of journal.Open. A journal of which
// some pod's newest status cannot be read is refused as a whole, as
// *journal.CorruptError: what is damaged is never passed over in silence (G8).
func Open(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open manager: %w", err)
	}
	m := &Manager{
		opts: o, log: o.Logger, projection: projection.New(), live: o.Live,
		locks: newPodLocks(), resizes: newResizeSlots(), notifier: notifier{deliver: o.Hooks.Notify},
	}
	m.openSources()
	m.journal, err = journal.Open(o.Path, journal.Options{
		Logger: o.Logger, LockTimeout: o.LockTimeout, Retention: o.Retention,
		Node: o.Node, Software: o.Software, OnCommit: m.committed,
	})
	if err != nil {
		return nil, err
	}
	if err := m.load(); err != nil {
		return nil, errors.Join(err, m.journal.Close())
	}
	if o.Client != nil {
		// After load: the syncer notes which entries are older than its first LIST.
		if m.syncer, err = syncer.New(m.syncerOptions()); err != nil {
			return nil, errors.Join(fmt.Errorf("open manager: %w", err), m.journal.Close())
		}
	}
	return m, nil
}

// committed is told of the events of each commit, in order.
func (m *Manager) committed(events []journal.Event) {
	m.projection.Commit(events)
	if hook := m.opts.Hooks.Committed; hook != nil {
		hook(len(events))
	}
}

// openSources builds the pod source and, with a client, the live pods.
func (m *Manager) openSources() {
	o := m.opts
	if o.Client != nil && m.live == nil {
		m.live = syncer.NewLivePods(o.Client, o.Node, syncer.LiveOptions{Logger: o.Logger})
	}
	if o.Pods == nil || o.RememberPods {
		m.memory = newPodMemory()
	}
	m.pods = o.Pods
	if m.pods == nil {
		own := ownLookup{memory: m.memory}
		if m.live != nil {
			own.live = m.live
		}
		m.pods = own
	}
}

// load replays each pod's newest event.
func (m *Manager) load() error {
	acks, err := m.journal.Acks()
	if err != nil {
		return err
	}
	if err := m.projection.Load(m.journal.Newest(), acks); err != nil {
		return m.damaged(err)
	}
	for _, e := range m.projection.List() {
		slots, err := decodeResize(e.Aux)
		if err != nil {
			return m.damaged(fmt.Errorf("event %d of pod %s: %w", e.Sequence, e.UID, err))
		}
		m.resizes.put(e.UID, slots)
	}
	if m.memory == nil {
		return nil
	}
	for uid, object := range m.journal.Objects() {
		err := object.Err
		if err == nil {
			err = m.memory.load(uid, object.Object)
		}
		if err != nil {
			// Nothing that was promised is lost: the caller gives the pod again with
			// its next status.
			m.log.Warn("pod object in the journal is not readable", logkey.UID, uid, logkey.Path, m.opts.Path, logkey.Err, err)
		}
	}
	return nil
}

// damaged makes an error of loading one that names the file and what helps.
func (m *Manager) damaged(err error) error {
	if _, ok := errors.AsType[*journal.CorruptError](err); ok {
		return err
	}
	kind := journal.ErrCorrupt
	if errors.Is(err, journal.ErrNewerFormat) || errors.Is(err, projection.ErrContentType) {
		kind = journal.ErrNewerFormat
	}
	var sequence journal.Sequence
	if e, ok := errors.AsType[*projection.EventError](err); ok {
		sequence = e.Sequence
	}
	return &journal.CorruptError{
		Path: m.opts.Path, Sequence: sequence, Kind: kind, Err: err,
		Hint: `run "journal-dump verify ` + m.opts.Path + `"`,
	}
}

// Run keeps the API server up to date until ctx ends, then returns nil. Without a
// client it only waits. It returns an error when the journal cannot be written in
// this process any more: the process must be started anew. It may be called once.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.checkOpen(); err != nil {
		return err
	}
	if m.ran.Swap(true) {
		return ErrAlreadyRun
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-m.journal.Failed():
			return fmt.Errorf("journal %s: %w; restart to go on", m.opts.Path, m.journal.Degraded())
		case <-ctx.Done():
			return nil
		}
	})
	group.Go(func() error {
		m.recoverDisk(ctx)
		return nil
	})
	if m.syncer != nil {
		group.Go(func() error { return m.live.Run(ctx) })
		group.Go(func() error { return m.syncer.Run(ctx) })
	}
	return group.Wait()
}

// recoverEvery is how often a degraded journal is asked whether it can write again.
const recoverEvery = time.Second

// recoverDisk lets health recover without waiting for somebody to write.
func (m *Manager) recoverDisk(ctx context.Context) {
	ticker := time.NewTicker(recoverEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if m.journal.Degraded() != nil {
				// The journal itself says what goes wrong.
				_ = m.journal.Flush(ctx)
			}
		}
	}
}

// Close waits for commits in flight, makes acks durable and releases the journal.
// It may be called more than once; calls that write return ErrClosed afterwards,
// reads still answer. Stop Run first.
func (m *Manager) Close() error {
	first := !m.closing.Swap(true)
	m.life.Lock()
	defer m.life.Unlock()
	if !first {
		return nil
	}
	return m.journal.Close()
}

// enter keeps the manager open until leave.
func (m *Manager) enter() error {
	m.life.RLock()
	if err := m.checkOpen(); err != nil {
		m.life.RUnlock()
		return err
	}
	return nil
}

func (m *Manager) leave() { m.life.RUnlock() }

func (m *Manager) checkOpen() error {
	if m.closing.Load() {
		return ErrClosed
	}
	return nil
}
