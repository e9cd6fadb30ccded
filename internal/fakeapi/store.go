// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// key names a pod; keys order as the paths of a real server's storage do.
type key struct{ namespace, name string }

func keyOf(pod *corev1.Pod) key { return key{pod.Namespace, pod.Name} }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// store is the pods, their resource version and their newest events. A pod in
// it is never modified, only replaced: readers share it without a lock.
type store struct {
	statusLog int

	// mu guards the fields below.
	mu      sync.RWMutex
	version uint64
	pods    map[key]*corev1.Pod
	hidden  map[key]*corev1.Pod
	window  window
	changed chan struct{} // closed and replaced by each commit
	history map[types.UID][]statusRecord
}

// statusRecord is an accepted status; the pod is shared with the store.
type statusRecord struct {
	at        time.Time
	userAgent string
	pod       *corev1.Pod
}

// The first version is above 1, so that there is an old one to ask for.
const firstVersion = 100

func newStore(o Options) *store {
	return &store{
		statusLog: o.StatusLog,
		version:   firstVersion,
		pods:      map[key]*corev1.Pod{},
		hidden:    map[key]*corev1.Pod{},
		window:    window{floor: firstVersion, limit: o.EventWindow},
		changed:   make(chan struct{}),
		history:   map[types.UID][]statusRecord{},
	}
}

func (s *store) get(k key) (*corev1.Pod, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pod, ok := s.pods[k]
	return pod, ok
}

// create adds a pod. It fails if there is one of that name, hidden or not.
func (s *store) create(pod *corev1.Pod) (*corev1.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := keyOf(pod)
	present, ok := s.pods[k]
	if !ok {
		present, ok = s.hidden[k]
	}
	if ok {
		return nil, errExists(present)
	}
	return s.commit(watch.Added, nil, pod), nil
}

// change is computed from the stored pod; it must not modify it. Returning the
// pod itself or an equal one changes nothing.
type change func(old *corev1.Pod) (*corev1.Pod, error)

// update replaces a pod by what fn makes of it. As in a real server fn runs
// outside the lock and again if the pod has changed meanwhile. The second
// result says whether anything changed.
func (s *store) update(k key, fn change) (*corev1.Pod, bool, error) {
	for {
		old, ok := s.get(k)
		if !ok {
			return nil, false, errNotFound(k.name)
		}
		next, err := fn(old)
		if err != nil {
			return nil, false, err
		}
		if next == old || equality.Semantic.DeepEqual(old, next) {
			return old, false, nil
		}
		if isFinalized(old, next) {
			if _, ok := s.remove(k, old); ok {
				return next, true, nil
			}
			continue
		}
		if stored, ok := s.swap(k, old, next); ok {
			return stored, true, nil
		}
	}
}

// isFinalized says whether the change from old to next lets go of a pod whose
// deletion waited only for its finalizers.
func isFinalized(old, next *corev1.Pod) bool {
	grace := old.DeletionGracePeriodSeconds
	return old.DeletionTimestamp != nil && (grace == nil || *grace == 0) && len(next.Finalizers) == 0
}

func (s *store) swap(k key, old, next *corev1.Pod) (*corev1.Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[k] != old {
		return nil, false
	}
	return s.commit(watch.Modified, old, next), true
}

// remove deletes a pod if it still is old.
func (s *store) remove(k key, old *corev1.Pod) (*corev1.Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[k] != old {
		return nil, false
	}
	return s.commit(watch.Deleted, old, old.DeepCopy()), true
}

// commit gives next the next version, stores it and tells the watches. The
// caller holds mu and gives up next.
func (s *store) commit(kind watch.EventType, old, next *corev1.Pod) *corev1.Pod {
	s.version++
	next.ResourceVersion = strconv.FormatUint(s.version, 10)
	next.TypeMeta.SetGroupVersionKind(podKind)
	if kind == watch.Deleted {
		delete(s.pods, keyOf(next))
	} else {
		s.pods[keyOf(next)] = next
	}
	s.window.add(event{version: s.version, kind: kind, before: old, after: next})
	close(s.changed)
	s.changed = make(chan struct{})
	return next
}

func (s *store) recordStatus(pod *corev1.Pod, userAgent string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := append(s.history[pod.UID], statusRecord{at: now, userAgent: userAgent, pod: pod})
	if len(records) > s.statusLog {
		records = slices.Clone(records[len(records)-s.statusLog:])
	}
	s.history[pod.UID] = records
}

// state returns the pods that sel selects in the order of their keys, and the
// current version.
func (s *store) state(sel selection) ([]*corev1.Pod, uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return selectPods(maps.Values(s.pods), sel), s.version
}

// stateAt is state as it was at version. It reports false if the events since
// then are gone.
func (s *store) stateAt(sel selection, version uint64) ([]*corev1.Pod, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	then, ok := s.window.undo(version)
	if !ok {
		return nil, false
	}
	return selectPods(func(yield func(*corev1.Pod) bool) {
		for k, pod := range s.pods {
			if _, touched := then[k]; !touched && !yield(pod) {
				return
			}
		}
		for _, pod := range then {
			if pod != nil && !yield(pod) {
				return
			}
		}
	}, sel), true
}

func (s *store) current() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// batch is what a watch that has seen all up to some version gets next.
type batch struct {
	events  []event
	current uint64          // version of the store
	changed <-chan struct{} // closed when there is more
}

// since returns the next events after version, and false if they are gone.
func (s *store) since(version uint64) (batch, bool) {
	const limit = 256
	s.mu.RLock()
	defer s.mu.RUnlock()
	events, ok := s.window.since(version, limit)
	return batch{events: events, current: s.version, changed: s.changed}, ok
}
