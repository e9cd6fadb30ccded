// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// slots are a pod's resize conditions. One that was emptied is known to be empty:
// the API server's copy may still have the condition, and must not bring it back.
type slots struct {
	podstatus.Resize
	pendingCleared, inProgressCleared bool
}

// with returns the slots after a change of the conditions.
func (s slots) with(r podstatus.Resize) slots {
	return slots{
		Resize:            r,
		pendingCleared:    r.Pending == nil && (s.pendingCleared || s.Pending != nil),
		inProgressCleared: r.InProgress == nil && (s.inProgressCleared || s.InProgress != nil),
	}
}

// backfill fills the slots of which nothing is known (SEMANTICS 36).
func (s slots) backfill(status *v1.PodStatus, now time.Time) podstatus.Resize {
	r := s.Backfill(status, now)
	if s.pendingCleared {
		r.Pending = nil
	}
	if s.inProgressCleared {
		r.InProgress = nil
	}
	return r
}

// resizeSlots are the resize slots of all pods that have or had a condition there.
type resizeSlots struct {
	// mu guards pods. A pod's slots are only changed under the pod's lock.
	mu   sync.Mutex
	pods map[types.UID]slots
}

func newResizeSlots() *resizeSlots { return &resizeSlots{pods: make(map[types.UID]slots)} }

func (s *resizeSlots) get(uid types.UID) slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[uid]
}

func (s *resizeSlots) put(uid types.UID, r slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == (slots{}) {
		delete(s.pods, uid)
		return
	}
	s.pods[uid] = r
}

// drop empties a pod's slots and tells of a deferred resize that ends with it.
func (s *resizeSlots) drop(uid types.UID, terminated func(uid types.UID, since time.Time)) {
	s.mu.Lock()
	since, deferred := s.pods[uid].Deferred()
	delete(s.pods, uid)
	s.mu.Unlock()
	if deferred {
		terminated(uid, since)
	}
}

// retain drops the slots of all other pods.
func (s *resizeSlots) retain(keep func(types.UID) bool, terminated func(uid types.UID, since time.Time)) {
	s.mu.Lock()
	var gone []types.UID
	for uid := range s.pods {
		if !keep(uid) {
			gone = append(gone, uid)
		}
	}
	s.mu.Unlock()
	for _, uid := range gone {
		s.drop(uid, terminated)
	}
}

// ResizeCount counts the pods with a resize in one state (SEMANTICS 37).
type ResizeCount struct {
	// State is "pending" or "in_progress".
	State string
	// Reason and Priority are those of pending ones; empty otherwise.
	Reason   string
	Priority string
	Pods     int
}

// ResizeCounts counts resizes by state, and pending ones by reason and by the
// bucket of the pod's priority: "system" from 2,000,000,000 on, "high" above 0,
// "default" for 0 or none, "low" below, "unknown" for an unknown pod.
func (m *Manager) ResizeCounts() []ResizeCount {
	type key struct{ state, reason, priority string }
	counts := make(map[key]int)
	for uid, r := range m.resizes.all() {
		if r.Pending != nil {
			counts[key{"pending", r.Pending.Reason, m.priorityBucket(uid)}]++
		}
		if r.InProgress != nil {
			counts[key{"in_progress", "", ""}]++
		}
	}
	var out []ResizeCount
	for k, n := range counts {
		out = append(out, ResizeCount{State: k.state, Reason: k.reason, Priority: k.priority, Pods: n})
	}
	return out
}

func (s *resizeSlots) all() map[types.UID]slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.pods)
}

// systemPriority is where the priorities of system classes begin.
const systemPriority = 2_000_000_000

func (m *Manager) priorityBucket(uid types.UID) string {
	pod, ok := m.pods.PodByUID(uid)
	switch {
	case !ok:
		return "unknown"
	case pod.Spec.Priority == nil || *pod.Spec.Priority == 0:
		return "default"
	case *pod.Spec.Priority >= systemPriority:
		return "system"
	case *pod.Spec.Priority > 0:
		return "high"
	default:
		return "low"
	}
}

// sameResize reports whether nothing but probe times differs.
func sameResize(a, b podstatus.Resize) bool {
	return sameSlot(a.Pending, b.Pending) && sameSlot(a.InProgress, b.InProgress)
}

func sameSlot(a, b *v1.PodCondition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// resizeFormat is the first byte of an event's Aux. The rest is a PodStatus as
// protobuf that has the conditions of the slots and nothing else. A condition with
// status False stands for a slot that was emptied.
const resizeFormat = 1

// encodeResize returns nil for slots that nobody ever filled.
func encodeResize(s slots) ([]byte, error) {
	conditions := s.List()
	if s.pendingCleared {
		conditions = append(conditions, v1.PodCondition{Type: v1.PodResizePending, Status: v1.ConditionFalse})
	}
	if s.inProgressCleared {
		conditions = append(conditions, v1.PodCondition{Type: v1.PodResizeInProgress, Status: v1.ConditionFalse})
	}
	if len(conditions) == 0 {
		return nil, nil
	}
	body, err := podstatus.Encode(&v1.PodStatus{Conditions: conditions})
	if err != nil {
		return nil, err
	}
	return append([]byte{resizeFormat}, body...), nil
}

func decodeResize(aux []byte) (slots, error) {
	if len(aux) == 0 {
		return slots{}, nil
	}
	if aux[0] != resizeFormat {
		return slots{}, fmt.Errorf("resize slots have format %d: %w", aux[0], journal.ErrNewerFormat)
	}
	status, err := podstatus.Decode(aux[1:])
	if err != nil {
		return slots{}, err
	}
	var s slots
	var filled []v1.PodCondition
	for _, c := range status.Conditions {
		switch {
		case c.Status == v1.ConditionTrue:
			filled = append(filled, c)
		case c.Type == v1.PodResizePending:
			s.pendingCleared = true
		case c.Type == v1.PodResizeInProgress:
			s.inProgressCleared = true
		}
	}
	s.Resize = podstatus.ResizeOf(filled)
	return s, nil
}
