// SPDX-License-Identifier: Apache-2.0

package podsapi

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/projection"
)

const (
	defaultMaxWatches = 100
	// Requests hold a UID at most.
	maxRequestBytes = 64 << 10
)

// Store is where pods and statuses come from: a *manager.Manager.
type Store interface {
	Entries() []*projection.Entry
	Entry(uid types.UID) (*projection.Entry, bool)
	// Pod returns a copy of a pod; its status is not looked at.
	Pod(uid types.UID) (*v1.Pod, bool)
	Watch() *projection.Watcher
}

var _ Store = (*manager.Manager)(nil)

// Options configure a Server. The zero value is the recommended setup.
type Options struct {
	// MaxWatches is how many WatchPods may be open at once; one more is refused with
	// RESOURCE_EXHAUSTED. Default 100.
	MaxWatches int
}

func (o Options) withDefaults() Options {
	if o.MaxWatches <= 0 {
		o.MaxWatches = defaultMaxWatches
	}
	return o
}

// Server answers the Pods API. Give it to Serve, or register it with a gRPC server:
//
//	podsv1alpha1.RegisterPodsServer(grpcServer, server)
type Server struct {
	podsv1alpha1.UnimplementedPodsServer // asked for by the generated code
	store                                Store
	watches                              chan struct{} // one value per open watch
}

var _ podsv1alpha1.PodsServer = (*Server)(nil)

// New returns a server on a store. It does no I/O.
func New(store Store, o Options) *Server {
	o = o.withDefaults()
	return &Server{store: store, watches: make(chan struct{}, o.MaxWatches)}
}

// Serve answers on a listener, which it closes, until the context ends; it returns nil
// then. Open calls are cut off. Who may connect is up to whoever made the listener: for a
// unix socket, the permissions of its folder.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Without WaitForHandlers, a watch could still use the store after Serve returned.
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestBytes), grpc.WaitForHandlers(true))
	podsv1alpha1.RegisterPodsServer(server, s)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		server.Stop()
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
		return nil
	}
	server.Stop()
	if err != nil {
		return fmt.Errorf("serve the pods API: %w", err)
	}
	return nil
}

// ListPods returns all pods, ordered by UID.
func (s *Server) ListPods(context.Context, *podsv1alpha1.ListPodsRequest) (*podsv1alpha1.ListPodsResponse, error) {
	entries := s.byUID()
	response := &podsv1alpha1.ListPodsResponse{Pods: make([][]byte, 0, len(entries))}
	for _, e := range entries {
		pod, err := s.encode(e)
		if err != nil {
			return nil, err
		}
		response.Pods = append(response.Pods, pod)
	}
	return response, nil
}

// GetPod returns the pod with a UID. Errors: INVALID_ARGUMENT without a UID,
// NOT_FOUND.
func (s *Server) GetPod(_ context.Context, r *podsv1alpha1.GetPodRequest) (*podsv1alpha1.GetPodResponse, error) {
	if r.GetPodUID() == "" {
		return nil, status.Error(codes.InvalidArgument, "podUID is required")
	}
	e, ok := s.entry(types.UID(r.GetPodUID()))
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no status of a pod with UID %q is stored", r.GetPodUID())
	}
	pod, err := s.encode(e)
	if err != nil {
		return nil, err
	}
	return &podsv1alpha1.GetPodResponse{Pod: pod}, nil
}

// entry finds a pod by its own UID. The store would answer to its mirror's, too, but a
// client that is given another UID than it asked for can't know why.
func (s *Server) entry(uid types.UID) (*projection.Entry, bool) {
	e, ok := s.store.Entry(uid)
	return e, ok && e.UID == uid
}

func (s *Server) byUID() []*projection.Entry {
	entries := slices.Clone(s.store.Entries())
	slices.SortFunc(entries, func(a, b *projection.Entry) int { return cmp.Compare(a.UID, b.UID) })
	return entries
}

// encode returns a pod with the entry's status. The object may be newer, and if the store
// drops the pod right now, it comes with a status that nobody stored.
func (s *Server) encode(e *projection.Entry) ([]byte, error) {
	pod, ok := s.store.Pod(e.UID)
	if !ok {
		pod = identity(e)
	}
	pod.Status = *e.Status // only read
	data, err := pod.Marshal()
	if err != nil {
		return nil, status.Errorf(codes.Internal, "encode pod %s/%s: %v", e.Namespace, e.Name, err)
	}
	return data, nil
}

// identity is the pod that an entry tells of, without status.
func identity(e *projection.Entry) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID}}
}
