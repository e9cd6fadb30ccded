// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// shown is what a watch's client sees: under each name one pod, the one with the
// newest event, if it matches. It turns events into what changes for the client.
type shown struct {
	names map[types.NamespacedName]view
	// before is how pods were when a watch began that does not know what its client
	// has seen: the object of a pod is forgotten when it is removed.
	before map[types.NamespacedName]view
	// complete: what is not in names does not exist. False for a watch that began
	// at a sequence: it does not know what the client has seen before.
	complete bool
	mayLeave bool // a pod may cease to match without being removed
}

// view is the pod that is seen under a name.
type view struct {
	uid      types.UID
	sequence journal.Sequence // of the newest event
	matches  bool
	labels   map[string]string
	status   *v1.PodStatus // as it was sent; shared with the projection as a rule
}

// change is one event of the watch.
type change struct {
	kind watch.EventType
	pod  *v1.Pod
}

func newShown(o listOptions) *shown {
	return &shown{names: make(map[types.NamespacedName]view), before: make(map[types.NamespacedName]view), mayLeave: o.changes()}
}

// begin notes a pod of the initial list.
func (s *shown) begin(e *projection.Entry, pod *v1.Pod, matches bool) {
	s.names[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = beginView(e, pod, matches)
}

// remember notes a pod that the client may have seen.
func (s *shown) remember(e *projection.Entry, pod *v1.Pod, matches bool) {
	s.before[types.NamespacedName{Namespace: e.Namespace, Name: e.Name}] = beginView(e, pod, matches)
}

func beginView(e *projection.Entry, pod *v1.Pod, matches bool) view {
	return view{uid: e.UID, sequence: e.Sequence, matches: matches, labels: pod.Labels, status: e.Status}
}

// last returns what is known of the pod in view before an event; false if nothing.
func (s *shown) last(e journal.Event) (view, bool) {
	if v, ok := s.names[nameOf(e)]; ok {
		return v, true
	}
	v, ok := s.before[nameOf(e)]
	if !ok || v.sequence >= e.Sequence { // it came later
		return view{}, false
	}
	return v, true
}

// knows says whether an event was part of the initial list already.
func (s *shown) knows(e journal.Event) bool {
	v, ok := s.names[nameOf(e)]
	return ok && v.sequence >= e.Sequence
}

// set returns what a new status means.
func (s *shown) set(e journal.Event, seen sharedPod, matches bool) []change {
	before, known := s.names[nameOf(e)]
	pod := seen.Pod
	s.names[nameOf(e)] = view{uid: e.UID, sequence: e.Sequence, matches: matches, labels: pod.Labels, status: seen.status}
	var changes []change
	if known && before.uid != e.UID {
		// Recreated: clients know pods by name, so the old one goes first.
		if before.matches {
			changes = append(changes, before.gone(e))
		}
		before, known = view{}, false
	}
	first := e.First || s.complete && !known
	switch {
	case matches && known && before.matches:
		changes = append(changes, change{watch.Modified, pod})
	case matches && (known || first || len(changes) > 0):
		changes = append(changes, change{watch.Added, pod})
	case matches:
		changes = append(changes, change{watch.Modified, pod})
	case known && before.matches, !known && !first && s.mayLeave:
		changes = append(changes, change{watch.Deleted, pod})
	}
	return changes
}

// remove returns what a removal means. The successor, if not nil, is another pod
// of the same name that matches. Unknown says whether the pod counts as seen if
// nothing is known of it.
func (s *shown) remove(e journal.Event, successor *v1.Pod, unknown bool) []change {
	before, known := s.last(e)
	if known && before.uid != e.UID {
		return nil // it was not the one in view
	}
	delete(s.names, nameOf(e))
	if known {
		delete(s.before, nameOf(e))
	}
	var changes []change
	if known && before.matches || !known && unknown {
		before.uid = e.UID
		changes = append(changes, before.gone(e))
	}
	if successor != nil {
		status := newSharedPod(successor).status
		s.names[nameOf(e)] = view{uid: successor.UID, matches: true, labels: successor.Labels, status: status}
		changes = append(changes, change{watch.Added, successor})
	}
	return changes
}

// gone is the end of a pod for the client, with the last status that it saw.
func (v view) gone(e journal.Event) change {
	pod := &v1.Pod{TypeMeta: podMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: e.Namespace, Name: e.Name, UID: v.uid, Labels: v.labels, ResourceVersion: resourceVersion(e.Sequence),
	}}
	if v.status != nil {
		pod.Status = *v.status
	}
	return change{watch.Deleted, pod}
}

func nameOf(e journal.Event) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

// entryAt is the entry that an event alone tells of.
func entryAt(e journal.Event) (*projection.Entry, error) {
	status, err := wire.Status(&e)
	if err != nil {
		return nil, err
	}
	if status == nil {
		return nil, fmt.Errorf("sequence %d: no status", e.Sequence)
	}
	return &projection.Entry{
		UID: e.UID, Namespace: e.Namespace, Name: e.Name, Version: e.Version, Sequence: e.Sequence, Status: status,
	}, nil
}
