// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// Observe stores the status in pod as the API server shows it: the flight
// recorder's call. Nothing is checked, computed or sent back, and the version
// counts as acked, since the server has it. A mirror pod is stored under its own
// UID. The same status again makes no version.
//
// A recorder gives the manager no Client and runs its own syncer.LivePods: with a
// Client, Run would defend what is stored against whoever changes it. A pod that
// is gone from the server is dropped with Remove and journal.ReasonDeleted.
//
// Errors: *InvalidError, *UIDConflictError, journal.ErrTooLarge,
// journal.ErrDegraded, ErrClosed.
func (m *Manager) Observe(ctx context.Context, pod *v1.Pod) (Change, error) {
	if err := checkIdentity(pod); err != nil {
		return Change{}, err
	}
	object, err := m.memory.remember(pod)
	if err != nil {
		return Change{}, err
	}
	seen, err := podstatus.Encode(&pod.Status)
	if err != nil {
		return Change{}, &InvalidError{Field: "status", Detail: err.Error()}
	}
	r := request{uid: pod.UID, pod: pod, object: object}
	change, err := m.update(ctx, pod.UID, func(entry *projection.Entry) (*write, Change, error) {
		if err := checkEntry(pod, entry); err != nil {
			return nil, Change{}, err
		}
		if entry != nil {
			stored, err := podstatus.Encode(entry.Status)
			if err == nil && bytes.Equal(stored, seen) {
				m.memory.seen(pod.UID, object)
				return nil, unchanged(entry), nil
			}
		}
		// Decoded from what is stored, so that times are those of the journal.
		status, err := podstatus.Decode(seen)
		if err != nil {
			return nil, Change{}, &InvalidError{Field: "status", Detail: err.Error()}
		}
		return &write{
			event: r.event(journal.ReasonObserved), status: status, object: object,
			added: entry == nil && pod.DeletionTimestamp == nil,
		}, Change{}, nil
	})
	if err == nil {
		m.ack(journal.Ack{UID: pod.UID, LiveUID: pod.UID, Version: change.Version, Time: time.Now()})
	}
	return change, err
}

// ack records what the server holds, in memory at once and in the journal with
// the next commit.
func (m *Manager) ack(a journal.Ack) {
	m.projection.SetAck(a)
	m.journal.PutAck(a)
}
