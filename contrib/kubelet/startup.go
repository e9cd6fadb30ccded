// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
	"github.com/statusstore/statusstore/syncer"
)

// startup observes the syncer: it records the time that statuses take to the API
// server and tells the start-up helper which pods' statuses have arrived there.
type startup struct {
	helper status.PodStartupLatencyStateHelper // may be nil
	log    klog.Logger
	pods   *podLookup
	next   syncer.Observer // the embedding program's; may be nil
	entry  func(types.UID) (*projection.Entry, bool)

	// mu guards acked.
	mu    sync.Mutex
	acked map[types.UID]acked
}

// acked is what the helper knows to have arrived.
type acked struct {
	version journal.Version
	live    types.UID
}

var _ syncer.Observer = (*startup)(nil)

func (m *Manager) entry(uid types.UID) (*projection.Entry, bool) { return m.store.Entry(uid) }

// Request is told to the embedding program only.
func (s *startup) Request(verb, outcome string, took time.Duration) {
	if s.next != nil {
		s.next.Request(verb, outcome, took)
	}
}

// Circuit is told to the embedding program only.
func (s *startup) Circuit(open bool) {
	if s.next != nil {
		s.next.Circuit(open)
	}
}

// Delivered comes right after a version was acked.
func (s *startup) Delivered(uid types.UID, latency time.Duration) {
	metrics.PodStatusSyncDuration.Observe(latency.Seconds())
	if s.helper != nil {
		if e, ok := s.entry(uid); ok && s.isNews(e) {
			s.tell(e)
		}
	}
	if s.next != nil {
		s.next.Delivered(uid, latency)
	}
}

// tell passes the pod on as the API server has it now: for a static pod its mirror.
func (s *startup) tell(e *projection.Entry) {
	known, ok := s.pods.find(e.UID)
	if mirror, paired := s.pods.MirrorPod(e.UID); paired && mirror.UID == e.AckedUID {
		known, ok = mirror, true
	}
	if !ok {
		known = &v1.Pod{}
		known.UID, known.Namespace, known.Name = e.AckedUID, e.Namespace, e.Name
	}
	pod := *known
	pod.Status = *e.Status.DeepCopy()
	s.helper.RecordStatusUpdated(s.log, &pod)
}

func (s *startup) isNews(e *projection.Entry) bool {
	next := acked{e.Acked, e.AckedUID}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.acked[e.UID]
	if e.Acked == 0 || e.Pending() || last == next {
		return false
	}
	if s.acked == nil {
		s.acked = make(map[types.UID]acked)
	}
	s.acked[e.UID] = next
	return true
}

// knows takes what was acked before this start as told.
func (s *startup) knows(e *projection.Entry) { s.isNews(e) }

func (s *startup) forget(uid types.UID) {
	s.mu.Lock()
	delete(s.acked, uid)
	s.mu.Unlock()
	if s.helper != nil {
		s.helper.DeletePodStartupState(uid)
	}
}
