// SPDX-License-Identifier: Apache-2.0

package podsapi_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/contrib/podsapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// limit is how long a test waits for what must happen: never, as opposed to soon.
const limit = time.Minute

// world is a store, and a client of the API that serves it over a unix socket.
type world struct {
	*manager.Manager
	client podsv1alpha1.PodsClient
	path   string // the journal
	dial   func(t *testing.T) podsv1alpha1.PodsClient
	stop   func() error // ends Serve and returns what it returned
}

func newWorld(t *testing.T, o podsapi.Options) *world {
	t.Helper()
	return serve(t, filepath.Join(t.TempDir(), journal.FileName), manager.Options{}, o)
}

// serve opens the journal and serves it.
func serve(t *testing.T, path string, mo manager.Options, o podsapi.Options) *world {
	t.Helper()
	mo.Path = path
	m, err := manager.Open(mo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })

	// Not t.TempDir: a socket's path may have 107 bytes at most.
	dir, err := os.MkdirTemp("", "podsapi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "pods.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var served error
	go func() {
		defer close(done)
		served = podsapi.New(m, o).Serve(ctx, listener)
	}()
	w := &world{Manager: m, path: path}
	w.stop = func() error {
		cancel()
		<-done
		return served
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("Serve: got %v, want nil after the context ended", err)
		}
	})
	w.dial = func(t *testing.T) podsv1alpha1.PodsClient {
		t.Helper()
		conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return podsv1alpha1.NewPodsClient(conn)
	}
	w.client = w.dial(t)
	return w
}

// pod is default/NAME with the UID uid-NAME.
func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}},
		Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: "app", Image: "app:1"}}},
	}
}

func running(message string) v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodRunning, Message: message}
}

// set stores a running status with a message.
func (w *world) set(t *testing.T, pod *v1.Pod, message string) {
	t.Helper()
	if _, err := w.SetPodStatus(t.Context(), pod, running(message)); err != nil {
		t.Fatal(err)
	}
}

// get asks for a pod that is there.
func (w *world) get(t *testing.T, uid string) *v1.Pod {
	t.Helper()
	response, err := w.client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: uid})
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, response.Pod)
}

func (w *world) remove(t *testing.T, uid types.UID) {
	t.Helper()
	if err := w.Remove(t.Context(), uid, journal.ReasonOrphaned); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, data []byte) *v1.Pod {
	t.Helper()
	pod := new(v1.Pod)
	if err := pod.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return pod
}

// stream is an open watch.
type stream struct {
	grpc.ServerStreamingClient[podsv1alpha1.WatchPodsEvent]
}

func watch(t *testing.T, client podsv1alpha1.PodsClient) stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	s, err := client.WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return stream{s}
}

// next returns the next event and its pod, which is nil after the initial ones.
func (s stream) next(t *testing.T) (podsv1alpha1.EventType, *v1.Pod) {
	t.Helper()
	e, err := s.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if e.Type == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE {
		if len(e.Pod) != 0 {
			t.Error("INITIAL_SYNC_COMPLETE has a pod")
		}
		return e.Type, nil
	}
	return e.Type, decode(t, e.Pod)
}

// line is an event in one line.
func line(kind podsv1alpha1.EventType, pod *v1.Pod) string {
	if pod == nil {
		return kind.String()
	}
	return fmt.Sprintf("%s %s %q", kind, pod.UID, pod.Status.Message)
}

// want expects exactly these events.
func (s stream) want(t *testing.T, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if got := line(s.next(t)); got != want {
			t.Fatalf("got event %s, want %s", got, want)
		}
	}
}
