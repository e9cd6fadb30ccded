// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// This file is what happens behind the client's back: changes without a
// request, without validation, and without an entry in the status history.
// Watches see them like any other change.

// Pod returns the pod as it is stored, hidden or not.
func (s *Server) Pod(namespace, name string) (*corev1.Pod, bool) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	k := key{namespace, name}
	pod, ok := s.store.pods[k]
	if !ok {
		pod, ok = s.store.hidden[k]
	}
	return pod.DeepCopy(), ok
}

// Pods returns the pods that clients can see, ordered by namespace and name.
func (s *Server) Pods() []*corev1.Pod {
	pods, _ := s.store.state(everything())
	for i := range pods {
		pods[i] = pods[i].DeepCopy()
	}
	return pods
}

func everything() selection {
	sel, err := newSelection("", "", "")
	if err != nil {
		panic(err) // impossible: there is nothing to parse
	}
	return sel
}

// ResourceVersion returns the version of the newest change.
func (s *Server) ResourceVersion() uint64 { return s.store.current() }

// Put stores the pod as it is, status included. A missing UID, creation time,
// phase or class is filled in; a given UID is kept, so that a removed pod can
// come back. A present pod of that name is replaced, if it has another UID by a
// deletion and a creation. It returns what was stored.
func (s *Server) Put(pod *corev1.Pod) (*corev1.Pod, error) {
	pod, err := wire(pod)
	if err != nil {
		return nil, err
	}
	if pod.Name == "" || pod.Namespace == "" {
		return nil, fmt.Errorf("put pod %q in namespace %q: both names are needed", pod.Name, pod.Namespace)
	}
	if pod.UID == "" {
		pod.UID = uuid.NewUUID()
	}
	if pod.CreationTimestamp.IsZero() {
		pod.CreationTimestamp = metav1.Now().Rfc3339Copy()
	}
	pod.Generation = max(pod.Generation, 1)
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	if pod.Status.QOSClass == "" {
		pod.Status.QOSClass = qosClass(&pod.Spec)
	}

	st := s.store
	st.mu.Lock()
	defer st.mu.Unlock()
	k := keyOf(pod)
	delete(st.hidden, k)
	old := st.pods[k]
	switch {
	case old == nil:
		return st.commit(watch.Added, nil, pod).DeepCopy(), nil
	case old.UID != pod.UID:
		st.commit(watch.Deleted, old, old.DeepCopy())
		return st.commit(watch.Added, nil, pod).DeepCopy(), nil
	default:
		return st.commit(watch.Modified, old, pod).DeepCopy(), nil
	}
}

// Mutate changes a stored pod by any edit of a copy of it; name, namespace and
// UID stay. It fails with ErrNoPod if clients can't see the pod.
func (s *Server) Mutate(namespace, name string, edit func(*corev1.Pod)) error {
	k := key{namespace, name}
	for {
		old, ok := s.store.get(k)
		if !ok {
			return fmt.Errorf("change pod %s/%s: %w", namespace, name, ErrNoPod)
		}
		next := old.DeepCopy()
		edit(next)
		next.Namespace, next.Name, next.UID = old.Namespace, old.Name, old.UID
		next, err := wire(next)
		if err != nil {
			return err
		}
		if _, ok := s.store.swap(k, old, next); ok {
			return nil
		}
	}
}

// SetStatus replaces a pod's status, whatever it was.
func (s *Server) SetStatus(namespace, name string, status corev1.PodStatus) error {
	return s.Mutate(namespace, name, func(pod *corev1.Pod) { pod.Status = *status.DeepCopy() })
}

// SetLabel sets one label of a pod.
func (s *Server) SetLabel(namespace, name, label, value string) error {
	return s.Mutate(namespace, name, func(pod *corev1.Pod) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, label, value)
	})
}

// Remove takes a pod away at once, without grace. It fails with ErrNoPod if
// there is none.
func (s *Server) Remove(namespace, name string) error {
	return s.take(namespace, name, func(key, *corev1.Pod) {})
}

// Hide makes a pod look deleted (404, gone from lists, a DELETED event) while
// the server keeps it. For a 404 without an event inject a Fault.
func (s *Server) Hide(namespace, name string) error {
	return s.take(namespace, name, func(k key, pod *corev1.Pod) { s.store.hidden[k] = pod })
}

func (s *Server) take(namespace, name string, keep func(key, *corev1.Pod)) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	k := key{namespace, name}
	old, ok := s.store.pods[k]
	if !ok {
		return fmt.Errorf("take away pod %s/%s: %w", namespace, name, ErrNoPod)
	}
	keep(k, old)
	s.store.commit(watch.Deleted, old, old.DeepCopy())
	return nil
}

// Unhide brings a hidden pod back as it was, with an ADDED event.
func (s *Server) Unhide(namespace, name string) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	k := key{namespace, name}
	pod, ok := s.store.hidden[k]
	if !ok {
		return fmt.Errorf("unhide pod %s/%s: %w", namespace, name, ErrNoPod)
	}
	delete(s.store.hidden, k)
	s.store.commit(watch.Added, nil, pod.DeepCopy())
	return nil
}

// ForgetEvents empties the event window: a watch that begins at an older
// version, and a list that continues at one, gets 410 Expired. Watches that are
// up to date go on.
func (s *Server) ForgetEvents() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.window.forget(len(s.store.window.events))
}

// Backup is the state of a server at one time.
type Backup struct {
	version uint64
	pods    map[key]*corev1.Pod
}

// Backup returns the pods that clients can see and their version.
func (s *Server) Backup() Backup {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	return Backup{version: s.store.version, pods: maps.Clone(s.store.pods)}
}

// Restore puts a server back to a backup, as an operator does with etcd: pods
// and resource version go back in time, events are forgotten and watches cut.
// As there, a client that watches on from a version it saw before hears nothing
// until that version is passed again.
func (s *Server) Restore(backup Backup) {
	s.store.mu.Lock()
	s.store.pods = maps.Clone(backup.pods)
	s.store.hidden = map[key]*corev1.Pod{}
	s.store.version = backup.version
	s.store.window = window{floor: backup.version, limit: s.store.window.limit}
	s.store.mu.Unlock()
	s.CutWatches()
}

// Wait returns as soon as cond holds for the pod as clients see it; nil stands
// for no pod. It fails with the context's error.
func (s *Server) Wait(ctx context.Context, namespace, name string, cond func(*corev1.Pod) bool) (*corev1.Pod, error) {
	for {
		s.store.mu.RLock()
		pod, changed := s.store.pods[key{namespace, name}].DeepCopy(), s.store.changed
		s.store.mu.RUnlock()
		if cond(pod) {
			return pod, nil
		}
		select {
		case <-changed:
		case <-s.done:
			return pod, ErrClosed
		case <-ctx.Done():
			return pod, fmt.Errorf("wait for pod %s/%s: %w", namespace, name, context.Cause(ctx))
		}
	}
}
