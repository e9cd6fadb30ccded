// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

const ns = metav1.NamespaceDefault

func listen(t testing.TB, o Options) *Server {
	t.Helper()
	return closeAtEnd(t, Listen, o)
}

func listenInMemory(t testing.TB, o Options) *Server {
	t.Helper()
	return closeAtEnd(t, ListenInMemory, o)
}

func closeAtEnd(t testing.TB, open func(Options) (*Server, error), o Options) *Server {
	t.Helper()
	server, err := open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return server
}

// client doesn't repeat requests by itself.
func client(t testing.TB, server *Server) kubernetes.Interface {
	t.Helper()
	return clientFor(t, server.RESTConfig())
}

func clientFor(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("make an HTTP client: %v", err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return clientset
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   "node-1",
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}},
		},
	}
}

func put(t testing.TB, server *Server, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	stored, err := server.Put(pod)
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	return stored
}

func patchMessage(ctx context.Context, pods typedv1.PodInterface, name, message string) error {
	patch := fmt.Sprintf(`{"status":{"message":%q}}`, message)
	_, err := pods.Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func message(t testing.TB, server *Server, name string) string {
	t.Helper()
	pod, ok := server.Pod(ns, name)
	if !ok {
		t.Fatalf("pod %s is gone", name)
	}
	return pod.Status.Message
}

func wantCode(t testing.TB, err error, code int32, reason metav1.StatusReason) {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("error is %v, want a Status with code %d", err, code)
	}
	if got := status.Status(); got.Code != code || got.Reason != reason {
		t.Errorf("status is %d %q, want %d %q", got.Code, got.Reason, code, reason)
	}
}

// within is a context for things that should happen at once.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}
