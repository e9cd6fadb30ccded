// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"sync"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/manager"
)

// notifiers tells subscribers of new statuses, in the order of versions.
type notifiers struct {
	pods *podLookup
	log  klog.Logger
	hook func(manager.Notification) // the embedding program's; may be nil

	// mu guards list.
	mu   sync.Mutex
	list []status.PodUpdateNotifier
}

// AddPodUpdateNotifier adds a subscriber. It is called without any lock held, on
// the goroutine of a caller.
func (m *Manager) AddPodUpdateNotifier(n status.PodUpdateNotifier) {
	m.notifiers.mu.Lock()
	defer m.notifiers.mu.Unlock()
	m.notifiers.list = append(m.notifiers.list, n)
}

// notify is the manager's hook.
func (n *notifiers) notify(event manager.Notification) {
	if n.hook != nil {
		defer n.hook(event)
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
		pod.Status = *event.Status()
		if event.Kind == manager.NotifyRemoved {
			to.OnPodRemoved(n.log, &pod)
			continue
		}
		to.OnPodUpdated(n.log, &pod, *event.Status(), event.Added)
	}
}
