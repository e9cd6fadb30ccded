// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/projection"
)

// notifiers tells subscribers of new statuses, in the order of versions.
type notifiers struct {
	pods  *podLookup
	log   klog.Logger
	hook  func(manager.Notification) // the embedding program's; may be nil
	entry func(types.UID) (*projection.Entry, bool)

	// mu guards the fields below.
	mu   sync.Mutex
	list []status.PodUpdateNotifier
	told map[types.UID]told
}

// told is what subscribers were told last. Statuses of entries are immutable, so
// the pointer stands for the content.
type told struct {
	status   *v1.PodStatus
	finished bool
}

// AddPodUpdateNotifier adds a subscriber. It is called without any lock held, on
// the goroutine of a caller.
func (m *Manager) AddPodUpdateNotifier(n status.PodUpdateNotifier) {
	m.notifiers.mu.Lock()
	defer m.notifiers.mu.Unlock()
	m.notifiers.list = append(m.notifiers.list, n)
}

func (m *Manager) entry(uid types.UID) (*projection.Entry, bool) { return m.store.Entry(uid) }

// notify is the manager's hook.
func (n *notifiers) notify(event manager.Notification) {
	if n.hook != nil {
		defer n.hook(event)
	}
	if n.sameStatus(event) {
		return
	}
	known, ok := n.pods.find(event.UID)
	if !ok {
		return // every call that makes a version passes or finds the pod
	}
	n.mu.Lock()
	list := slices.Clone(n.list)
	n.mu.Unlock()
	for _, to := range list {
		pod := *known
		pod.Status = *event.Status.DeepCopy()
		if event.Kind == manager.NotifyRemoved {
			to.OnPodRemoved(n.log, &pod)
			continue
		}
		to.OnPodUpdated(n.log, &pod, *event.Status.DeepCopy(), event.Added)
	}
}

// sameStatus reports whether the version differs from what was told last in
// nothing but resize slots. The stock manager keeps these apart and tells nobody.
func (n *notifiers) sameStatus(event manager.Notification) bool {
	e, ok := n.entry(event.UID)
	next := told{}
	if ok && e.Version == event.Version { // else a newer one is told next
		next = told{e.Status, e.Finished}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.told[event.UID]
	if n.told == nil {
		n.told = make(map[types.UID]told)
	}
	n.told[event.UID] = next
	return next.status != nil && next == last
}

// knows takes a status from the journal as told.
func (n *notifiers) knows(e *projection.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told == nil {
		n.told = make(map[types.UID]told)
	}
	n.told[e.UID] = told{e.Status, e.Finished}
}

func (n *notifiers) forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.told, uid)
}
