// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"pgregory.net/rapid"
)

// The window against a list of all states there ever were.
func TestWindow_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := window{floor: 10, limit: rapid.IntRange(1, 5).Draw(t, "limit")}
		states := map[uint64]map[key]*corev1.Pod{10: {}}
		version := uint64(10)
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			state := map[key]*corev1.Pod{}
			for k, pod := range states[version] {
				state[k] = pod
			}
			version++
			after := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), ResourceVersion: fmt.Sprint(version)}}
			before := state[keyOf(after)]
			kind := watch.Modified
			switch {
			case before == nil:
				kind = watch.Added
			case rapid.Bool().Draw(t, "delete"):
				kind = watch.Deleted
			}
			if state[keyOf(after)] = after; kind == watch.Deleted {
				delete(state, keyOf(after))
			}
			states[version] = state
			w.add(event{version: version, kind: kind, before: before, after: after})
		}

		asked := rapid.Uint64Range(10, version+2).Draw(t, "asked")
		then, ok := w.undo(asked)
		if want := asked >= w.floor; ok != want {
			t.Fatalf("undo to %d with floor %d: %v, want %v", asked, w.floor, ok, want)
		}
		if kept := len(w.events); kept > 2*w.limit {
			t.Fatalf("%d events kept, limit %d", kept, w.limit)
		}
		if ok && asked <= version {
			state := map[key]*corev1.Pod{}
			for k, pod := range states[version] {
				state[k] = pod
			}
			for k, pod := range then {
				if state[k] = pod; pod == nil {
					delete(state, k)
				}
			}
			if fmt.Sprint(state) != fmt.Sprint(states[asked]) {
				t.Fatalf("state at %d is %v, want %v", asked, state, states[asked])
			}
		}
		if events, ok := w.since(asked, 100); ok && len(events) != int(max(version, asked)-asked) {
			t.Fatalf("%d events after %d, newest is %d", len(events), asked, version)
		}
	})
}
