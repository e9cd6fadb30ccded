// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Target is an API server under test.
type Target struct {
	Config *rest.Config

	// Node is the name of a node that nobody serves. It need not exist.
	Node string

	// ForgetEvents makes the server answer 410 Expired to those who ask for
	// anything older than now. Nil: the server can't be made to, and the
	// subtests that need it are skipped.
	ForgetEvents func()
}

// Run runs the suite. It asks for a target for each subtest; it may be the same
// one each time.
func Run(t *testing.T, newTarget func(t *testing.T) Target) {
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"Create", createCases},
		{"Status", statusCases},
		{"StatusRules", statusRuleCases},
		{"Transitions", transitionCases()},
		{"Delete", deleteCases},
		{"List", listCases},
		{"Watch", watchCases},
		{"Informer", informerCases},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newBench(t, newTarget(t))) })
			}
		})
	}
}

type testCase struct {
	name string
	run  func(*bench)
}

// bench is what a subtest works with.
type bench struct {
	*testing.T
	ctx    context.Context
	target Target
	pods   typedv1.PodInterface // namespace default, in protobuf
	prefix string               // of the names of this subtest's pods
}

const (
	namespace = metav1.NamespaceDefault
	// Far above what any subtest needs; only a hang comes near.
	patience = 30 * time.Second
)

func newBench(t *testing.T, target Target) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &bench{
		T:      t,
		ctx:    ctx,
		target: target,
		pods:   clientFor(t, target.Config).CoreV1().Pods(namespace),
		prefix: "conformance-" + rand.String(6) + "-",
	}
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatalf("make an HTTP client: %v", err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) })
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return client
}

// pod is a pod bound to the target's node with one container "app".
func (b *bench) pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   b.prefix + name,
			Labels: map[string]string{"conformance": b.prefix[:len(b.prefix)-1]},
		},
		Spec: corev1.PodSpec{
			NodeName:                     b.target.Node,
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "app", Image: "registry.example/app:1"}},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func restartPolicy(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = policy }
}

func unbound(pod *corev1.Pod) { pod.Spec.NodeName = "" }

// create creates a pod that is removed at the end of the subtest.
func (b *bench) create(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	created, err := b.pods.Create(b.ctx, b.pod(name, edits...), metav1.CreateOptions{})
	if err != nil {
		b.Fatalf("create pod: %v", err)
	}
	b.removeAtEnd(created.Name)
	return created
}

func (b *bench) removeAtEnd(name string) {
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), patience)
		defer cancel()
		err := b.pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err != nil && !apierrors.IsNotFound(err) {
			b.Errorf("remove pod: %v", err)
		}
	})
}

func (b *bench) get(name string) *corev1.Pod {
	b.Helper()
	pod, err := b.pods.Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.Fatalf("get pod: %v", err)
	}
	return pod
}

// patch sends a strategic merge patch of the status subresource.
func (b *bench) patch(name, patch string) (*corev1.Pod, error) {
	return b.patchAs(types.StrategicMergePatchType, name, patch)
}

func (b *bench) patchAs(patchType types.PatchType, name, patch string) (*corev1.Pod, error) {
	return b.pods.Patch(b.ctx, name, patchType, []byte(patch), metav1.PatchOptions{}, "status")
}

func (b *bench) mustPatch(name, patch string) *corev1.Pod {
	b.Helper()
	pod, err := b.patch(name, patch)
	if err != nil {
		b.Fatalf("patch status with %s: %v", patch, err)
	}
	return pod
}

// wantError checks code and reason of a Status.
func (b *bench) wantError(err error, code int32, reason metav1.StatusReason) {
	b.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		b.Fatalf("error is %v, want a Status with code %d", err, code)
	}
	if got := status.Status(); got.Code != code || got.Reason != reason {
		b.Errorf("status is %d %q (%s), want %d %q", got.Code, got.Reason, got.Message, code, reason)
	}
}

// wantCause checks that a Status blames a field.
func (b *bench) wantCause(err error, field string) {
	b.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		b.Fatalf("error is %v, want a Status with details", err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field {
			return
		}
		fields = append(fields, cause.Field)
	}
	b.Errorf("blamed fields are [%s], want %s among them", strings.Join(fields, " "), field)
}
