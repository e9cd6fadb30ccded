// SPDX-License-Identifier: Apache-2.0

package manager

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// Reads answer from memory: they never wait for the disk, and they go on while
// the journal is degraded. What they show is durable (G1).

// GetPodStatus returns a copy of a pod's stored status (SEMANTICS 5, 7). Either UID
// of a static pod and its mirror will do.
func (m *Manager) GetPodStatus(uid types.UID) (*v1.PodStatus, bool) {
	e, ok := m.Entry(uid)
	if !ok {
		return nil, false
	}
	return e.Status.DeepCopy(), true
}

// ContainerReadiness returns what is known of the readiness of a container, named
// by its full ID: after a restart of the agent what was known before it, and for
// another ID nothing. Ask it instead of taking a container for unready until its
// first probe. Either UID of a static pod and its mirror will do.
func (m *Manager) ContainerReadiness(uid types.UID, containerID string) podstatus.ProbeResult {
	if e, ok := m.Entry(uid); ok {
		return podstatus.Readiness(e.Status, containerID)
	}
	return podstatus.ProbeUnknown
}

// ContainerStartup is ContainerReadiness for the start of a container.
func (m *Manager) ContainerStartup(uid types.UID, containerID string) podstatus.ProbeResult {
	if e, ok := m.Entry(uid); ok {
		return podstatus.Startup(e.Status, containerID)
	}
	return podstatus.ProbeUnknown
}

// Entry returns what is stored of a pod, by either UID. Entries are shared and must
// not be changed.
func (m *Manager) Entry(uid types.UID) (*projection.Entry, bool) {
	if e, ok := m.projection.Get(uid); ok {
		return e, true
	}
	source := m.pods.ResolveUID(uid)
	if source == uid {
		return nil, false
	}
	return m.projection.Get(source)
}

// EntriesByName returns what is stored under a name, the newest event first: more
// than one pod after one was recreated and the old one not removed yet.
func (m *Manager) EntriesByName(namespace, name string) []*projection.Entry {
	return m.projection.ByName(namespace, name)
}

// Entries returns all pods by namespace, name and UID.
func (m *Manager) Entries() []*projection.Entry { return m.projection.List() }

// Pod returns a copy of a pod as the pod source or the journal knows it, with the
// stored status. It finds pods without a stored status too; those have the status
// that the source shows.
func (m *Manager) Pod(uid types.UID) (*v1.Pod, bool) {
	uid = m.resolve(uid)
	known, ok := m.pods.PodByUID(uid)
	if !ok {
		known, ok = m.memory.pod(uid)
	}
	if !ok {
		return nil, false
	}
	pod := known.DeepCopy()
	if e, ok := m.projection.Get(uid); ok {
		pod.Status = *e.Status.DeepCopy()
	}
	return pod, true
}

// Watch returns a watcher that tells which pods changed. Stop it when done.
func (m *Manager) Watch() *projection.Watcher { return m.projection.Watch() }

// Journal gives access to the history: events, snapshots, figures. Only the
// manager appends to it.
func (m *Manager) Journal() *journal.Journal { return m.journal }

// resolve translates a mirror's UID, unless the UID has an entry of its own.
func (m *Manager) resolve(uid types.UID) types.UID {
	if _, ok := m.projection.Get(uid); ok {
		return uid
	}
	return m.pods.ResolveUID(uid)
}
