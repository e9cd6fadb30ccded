// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/syncer"
)

// SyncOnce does one full pass: every pod is compared with the API server's copy
// and, unless it has to wait after a failure, sent. It works with and without Run.
// ErrNoClient without a client; a *syncer.UndeliveredError if the server still
// lacks a status that could have been sent.
func (m *Manager) SyncOnce(ctx context.Context) error {
	if err := m.checkOpen(); err != nil {
		return err
	}
	if m.syncer == nil {
		return ErrNoClient
	}
	return m.syncer.SyncOnce(ctx)
}

// Drain waits until Run has sent what is pending, or ctx ends; see
// syncer.Syncer.Drain. Without a client there is nothing to wait for.
func (m *Manager) Drain(ctx context.Context) error {
	if m.syncer == nil {
		return nil
	}
	return m.syncer.Drain(ctx)
}

// Wake makes Run look at a pod now, by either UID. Call it when the Runtime's
// answer for the pod changed: a terminal phase that was held goes out at once
// (SEMANTICS 82).
func (m *Manager) Wake(uid types.UID) {
	if m.syncer != nil {
		m.syncer.Wake(uid)
	}
}

// SyncStats returns counts for metrics; zero without a client.
func (m *Manager) SyncStats() syncer.Stats {
	if m.syncer == nil {
		return syncer.Stats{}
	}
	return m.syncer.Stats()
}

// Failing returns the pods whose last request was not fine, and why.
func (m *Manager) Failing() map[types.UID]syncer.Failure {
	if m.syncer == nil {
		return nil
	}
	return m.syncer.Failing()
}
