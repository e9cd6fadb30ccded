// SPDX-License-Identifier: Apache-2.0

package podsapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/contrib/podsapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

func TestListPods(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	list := func() []*v1.Pod {
		t.Helper()
		response, err := w.client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var pods []*v1.Pod
		for _, data := range response.Pods {
			pods = append(pods, decode(t, data))
		}
		return pods
	}
	if got := list(); len(got) != 0 {
		t.Errorf("empty store: got %d pods", len(got))
	}
	for _, name := range []string{"c", "a", "b"} {
		w.set(t, pod(name), "first")
		w.set(t, pod(name), "second")
	}
	w.remove(t, "uid-b")

	var want []*v1.Pod
	for _, name := range []string{"a", "c"} { // by UID
		p := pod(name)
		stored, _ := w.GetPodStatus(p.UID)
		p.Status = *stored
		want = append(want, p)
	}
	got := list()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if got[0].Status.Message != "second" {
		t.Errorf("got status %q, want the newest", got[0].Status.Message)
	}
}

func TestGetPod(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	w.set(t, pod("a"), "here")
	static := pod("static")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	w.set(t, static, "from a file")
	mirror := pod("static")
	mirror.UID = "uid-mirror"
	mirror.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "hash"}
	w.set(t, mirror, "through its mirror") // stored as the static pod's

	tests := []struct {
		name, uid, want string
		code            codes.Code
	}{
		{"stored", "uid-a", "here", codes.OK},
		{"unknown", "uid-x", "", codes.NotFound},
		{"name instead of UID", "a", "", codes.NotFound},
		{"no UID", "", "", codes.InvalidArgument},
		{"static", "uid-static", "through its mirror", codes.OK},
		{"mirror", "uid-mirror", "", codes.NotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			response, err := w.client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: tt.uid})
			if got := status.Code(err); got != tt.code {
				t.Fatalf("got %v (%v), want %v", got, err, tt.code)
			}
			if err != nil {
				return
			}
			got := decode(t, response.Pod)
			if string(got.UID) != tt.uid || got.Status.Message != tt.want || got.Spec.NodeName != "node-1" {
				t.Errorf("got %s with status %q on %q, want status %q of the whole pod", got.UID, got.Status.Message, got.Spec.NodeName, tt.want)
			}
		})
	}
}

// noPods is a pod source that knows of no pod.
type noPods struct{}

func (noPods) PodByUID(types.UID) (*v1.Pod, bool)     { return nil, false }
func (noPods) MirrorPod(types.UID) (*v1.Pod, bool)    { return nil, false }
func (noPods) MirrorOf(types.UID) (types.UID, bool)   { return "", false }
func (noPods) ResolveUID(uid types.UID) (_ types.UID) { return uid }

func TestGetPod_ObjectUnknown(t *testing.T) {
	w := serve(t, filepath.Join(t.TempDir(), journal.FileName), manager.Options{Pods: noPods{}}, podsapi.Options{})
	w.set(t, pod("a"), "here")
	stored, _ := w.GetPodStatus("uid-a")
	want := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a"}, Status: *stored}
	if diff := cmp.Diff(want, w.get(t, "uid-a")); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

// onePod is a pod source that knows a pod, with a status that nobody has stored.
type onePod struct {
	noPods
	pod *v1.Pod
}

func (o onePod) PodByUID(types.UID) (*v1.Pod, bool) { return o.pod, true }

// vanishing is a store that drops each pod right when it is looked at.
type vanishing struct{ *manager.Manager }

func (v vanishing) Pod(uid types.UID) (*v1.Pod, bool) {
	if err := v.Remove(context.Background(), uid, journal.ReasonOrphaned); err != nil {
		return nil, false
	}
	return v.Manager.Pod(uid)
}

// TestG1_StoredOnly serves no status but a stored one, whatever happens meanwhile.
func TestG1_StoredOnly(t *testing.T) {
	p := pod("a")
	p.Status = running("nowhere on disk")
	w := serve(t, filepath.Join(t.TempDir(), journal.FileName), manager.Options{Pods: onePod{pod: p}}, podsapi.Options{})
	w.set(t, p, "stored")
	server := podsapi.New(vanishing{w.Manager}, podsapi.Options{})
	response, err := server.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: string(p.UID)})
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(t, response.Pod).Status.Message; got != "stored" {
		t.Errorf("got status %q, want the stored one", got)
	}
}

// TestG1_Restart serves the statuses again that were stored before.
func TestG1_Restart(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	w.set(t, pod("a"), "before")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again := serve(t, w.path, manager.Options{}, podsapi.Options{})
	watch(t, again.client).want(t, `ADDED uid-a "before"`, "INITIAL_SYNC_COMPLETE")
	if got := again.get(t, "uid-a").Spec.NodeName; got != "node-1" {
		t.Errorf("after the restart: got a pod on node %q, want the object, too", got)
	}
}

func TestServe_End(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	s := watch(t, w.client)
	s.want(t, "INITIAL_SYNC_COMPLETE")
	if err := w.stop(); err != nil { // returns although a watch is open
		t.Errorf("got %v, want nil", err)
	}
	if _, err := s.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("open watch: got %v, want an error", err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := podsapi.New(w, podsapi.Options{}).Serve(t.Context(), listener); err == nil {
		t.Error("a listener that is closed: got no error")
	}
}
