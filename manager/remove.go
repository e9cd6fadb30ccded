// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/statusstore/statusstore/journal"
)

// removeBatch is how many pods are removed in one commit. A commit that frees
// many pages at once makes the journal's free list long, and each later commit
// slower.
const removeBatch = 256

// RemoveOrphanedStatuses removes all pods but those in keep, which holds the UIDs
// of pods that the node runs; mirror UIDs in it are harmless (SEMANTICS 98). It
// returns the UIDs that were removed. After an error those returned are removed
// and the others are as before. A removed pod does not come back by replay; should
// its UID return, its versions go on where they ended.
func (m *Manager) RemoveOrphanedStatuses(ctx context.Context, keep sets.Set[types.UID]) ([]types.UID, error) {
	var orphans []types.UID
	for _, e := range m.projection.List() {
		if !keep.Has(e.UID) {
			orphans = append(orphans, e.UID)
		}
	}
	slices.Sort(orphans)
	var removed []types.UID
	for batch := range slices.Chunk(orphans, removeBatch) {
		done, err := m.remove(ctx, batch, journal.ReasonOrphaned)
		removed = append(removed, done...)
		if err != nil {
			return removed, err
		}
	}
	m.resizes.retain(keep.Has, m.resizeTerminated)
	m.rejections.retain(keep.Has)
	return removed, m.checkOpen()
}

// Remove removes one pod. There is no error if it has no status.
func (m *Manager) Remove(ctx context.Context, uid types.UID, reason journal.Reason) error {
	_, err := m.remove(ctx, []types.UID{uid}, reason)
	return err
}

// remove removes pods in one commit and returns those that were there. The UIDs
// are in ascending order.
func (m *Manager) remove(ctx context.Context, uids []types.UID, reason journal.Reason) ([]types.UID, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	locked := make([]types.UID, 0, len(uids))
	unlock := func() {
		for _, uid := range locked {
			m.locks.unlock(uid)
		}
		m.leave()
	}
	var ended []func() // hooks: called when no lock is held any more
	var events []journal.Event
	for _, uid := range uids {
		if err := m.locks.lock(ctx, uid); err != nil {
			unlock()
			return nil, fmt.Errorf("wait for pod %s: %w", uid, err)
		}
		locked = append(locked, uid)
		if e, ok := m.projection.Get(uid); ok {
			events = append(events, journal.Event{
				Kind: journal.KindRemoved, UID: uid, Namespace: e.Namespace, Name: e.Name, Reason: reason,
			})
		}
	}
	return detached(ctx, func() ([]types.UID, error) {
		defer func() {
			unlock()
			for _, hook := range ended {
				hook()
			}
		}()
		if len(events) == 0 {
			return nil, nil
		}
		_, err := m.journal.Append(context.WithoutCancel(ctx), events...)
		if err != nil {
			return nil, fmt.Errorf("remove %d pods: %w", len(events), err)
		}
		removed := make([]types.UID, 0, len(events))
		for i := range events {
			m.forget(events[i].UID, func(uid types.UID, since time.Time) {
				ended = append(ended, func() { m.resizeTerminated(uid, since) })
			})
			removed = append(removed, events[i].UID)
		}
		return removed, nil
	})
}

// forget drops what is kept about a removed pod beside its entry.
func (m *Manager) forget(uid types.UID, deferredResize func(uid types.UID, since time.Time)) {
	m.resizes.drop(uid, deferredResize)
	m.memory.forget(uid)
	m.rejections.clear(uid)
}
