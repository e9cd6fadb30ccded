// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// liveStore is where the reflector puts what it hears.
type liveStore struct{ pods *LivePods }

// Add implements cache.ReflectorStore.
func (s liveStore) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s liveStore) Update(obj any) error {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return fmt.Errorf("live pods: got a %T", obj)
	}
	old, _ := s.pods.Get(pod.Namespace, pod.Name)
	if err := s.pods.store.Update(strip(pod)); err != nil {
		return err
	}
	s.pods.changed(old, pod)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s liveStore) Delete(obj any) error {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return fmt.Errorf("live pods: got a %T", obj)
	}
	old, ok := s.pods.Get(pod.Namespace, pod.Name)
	if !ok {
		return nil
	}
	if err := s.pods.store.Delete(pod); err != nil {
		return err
	}
	s.pods.changed(old, nil)
	return nil
}

// Replace implements cache.ReflectorStore: a LIST is complete. Objects that did
// not change since are not reported.
func (s liveStore) Replace(items []any, resourceVersion string) error {
	before := make(map[types.NamespacedName]*v1.Pod)
	for _, pod := range s.pods.List() {
		before[nameOf(pod)] = pod
	}
	for _, obj := range items {
		strip(obj.(*v1.Pod))
	}
	if err := s.pods.store.Replace(items, resourceVersion); err != nil {
		return err
	}
	s.pods.complete.Store(s.pods.begun.Load()) // there is one LIST at a time
	for _, obj := range items {
		pod := obj.(*v1.Pod)
		old := before[nameOf(pod)]
		delete(before, nameOf(pod))
		if old == nil || old.UID != pod.UID || old.ResourceVersion != pod.ResourceVersion {
			s.pods.changed(old, pod)
		}
	}
	for _, old := range before {
		s.pods.changed(old, nil)
	}
	// After the handlers: whoever waits for this may rely on what they learned.
	s.pods.syncOnce.Do(func() { close(s.pods.synced) })
	return nil
}

// Resync implements cache.ReflectorStore. There is no resync period.
func (liveStore) Resync() error { return nil }

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

var _ cache.ReflectorStore = liveStore{}

// strip drops what nobody here reads and what is most of many objects.
func strip(pod *v1.Pod) *v1.Pod {
	pod.ManagedFields = nil
	return pod
}
