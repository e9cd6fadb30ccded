// SPDX-License-Identifier: Apache-2.0

package podsapi

import (
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/projection"
)

// WatchPods sends ADDED for each pod that is there, INITIAL_SYNC_COMPLETE, and from then on
// ADDED, MODIFIED and DELETED. A DELETED pod has its namespace, name and UID only.
// Changes that a client is too slow for are told as one. Error:
// RESOURCE_EXHAUSTED if too many watches are open.
func (s *Server) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]) error {
	select {
	case s.watches <- struct{}{}:
		defer func() { <-s.watches }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d watches are open already", cap(s.watches))
	}
	// Before the list: what changes meanwhile is sent once more rather than missed.
	changes := s.store.Watch()
	defer changes.Stop()

	w := watch{server: s, stream: stream, sent: make(map[types.UID]*projection.Entry)}
	for _, e := range s.byUID() {
		if err := w.sendNewest(e); err != nil {
			return err
		}
	}
	if err := w.send(podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE, nil); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-changes.C:
		}
		uids := changes.Take()
		slices.Sort(uids) // the same changes, the same order
		for _, uid := range uids {
			if err := w.update(uid); err != nil {
				return err
			}
		}
		if err := w.sweep(); err != nil {
			return err
		}
	}
}

// watch is one client's stream. It belongs to one goroutine.
type watch struct {
	server *Server
	stream grpc.ServerStreamingServer[podsv1alpha1.WatchPodsEvent]
	// sent is what the client has of each pod. Entries are shared with the store, at no
	// cost unless the client is behind.
	sent map[types.UID]*projection.Entry
}

// update sends what became of a pod.
func (w *watch) update(uid types.UID) error {
	if e, ok := w.server.entry(uid); ok {
		return w.sendNewest(e)
	}
	return w.sendDeleted(uid)
}

// sendNewest sends a pod, unless the client has this version.
func (w *watch) sendNewest(e *projection.Entry) error {
	kind := podsv1alpha1.EventType_ADDED
	if old, ok := w.sent[e.UID]; ok {
		if old.Sequence == e.Sequence {
			return nil
		}
		kind = podsv1alpha1.EventType_MODIFIED
	}
	pod, err := w.server.encode(e)
	if err != nil {
		return err
	}
	if err := w.send(kind, pod); err != nil {
		return err
	}
	w.sent[e.UID] = e
	return nil
}

// sendDeleted sends that a pod is gone, if the client has it.
func (w *watch) sendDeleted(uid types.UID) error {
	e, ok := w.sent[uid]
	if !ok {
		return nil
	}
	pod, err := identity(e).Marshal()
	if err != nil {
		return status.Errorf(codes.Internal, "encode pod %s/%s: %v", e.Namespace, e.Name, err)
	}
	delete(w.sent, uid)
	return w.send(podsv1alpha1.EventType_DELETED, pod)
}

// sweep sends removals that nobody told of: a watcher that falls behind by more UIDs
// than there are pods loses some. The client then has more pods than there are.
func (w *watch) sweep() error {
	if len(w.sent) <= len(w.server.store.Entries()) {
		return nil
	}
	var gone []types.UID
	for uid := range w.sent {
		if _, ok := w.server.entry(uid); !ok {
			gone = append(gone, uid)
		}
	}
	slices.Sort(gone)
	for _, uid := range gone {
		if err := w.sendDeleted(uid); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) send(kind podsv1alpha1.EventType, pod []byte) error {
	return w.stream.Send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: pod})
}
