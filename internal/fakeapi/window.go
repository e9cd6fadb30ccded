// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// event is one change of one pod. The pods are never modified.
type event struct {
	version uint64
	kind    watch.EventType
	before  *corev1.Pod // nil when the pod was added
	after   *corev1.Pod // for a deletion the last state with the version of the deletion
}

// window holds the newest events in order. Events at or below floor are gone.
type window struct {
	events []event
	floor  uint64
	limit  int
}

func (w *window) add(e event) {
	w.events = append(w.events, e)
	// Drop in bulk: moving the slice at each event would cost O(limit) per write.
	if len(w.events) >= 2*w.limit {
		w.forget(len(w.events) - w.limit)
	}
}

func (w *window) forget(n int) {
	if n == 0 {
		return
	}
	w.floor = w.events[n-1].version
	kept := make([]event, len(w.events)-n, 2*w.limit)
	copy(kept, w.events[n:])
	w.events = kept
}

// since returns up to limit events after version, and false if some of them
// may be gone.
func (w *window) since(version uint64, limit int) ([]event, bool) {
	if version < w.floor {
		return nil, false
	}
	from := sort.Search(len(w.events), func(i int) bool { return w.events[i].version > version })
	to := min(from+limit, len(w.events))
	// The slice is only ever appended to or replaced, so sharing it is safe.
	return w.events[from:to:to], true
}

// undo returns what the pods touched after version were at version, nil for
// those that weren't there.
func (w *window) undo(version uint64) (map[key]*corev1.Pod, bool) {
	if version < w.floor {
		return nil, false
	}
	then := map[key]*corev1.Pod{}
	for i := len(w.events) - 1; i >= 0 && w.events[i].version > version; i-- {
		then[keyOf(w.events[i].after)] = w.events[i].before
	}
	return then, true
}
