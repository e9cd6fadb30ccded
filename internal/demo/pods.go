// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

const (
	nodeName  = "demo-node"
	namespace = "demo"
)

// createPods puts n pods of the node on the API server.
func createPods(server *fakeapi.Server, n int) ([]*v1.Pod, error) {
	pods := make([]*v1.Pod, n)
	for i := range n {
		pod, err := server.Put(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%03d", i), Labels: map[string]string{"app": "web"}},
			Spec: v1.PodSpec{
				NodeName:      nodeName,
				RestartPolicy: v1.RestartPolicyAlways,
				Containers:    []v1.Container{{Name: "app", Image: "example.com/web:1"}},
			},
		})
		if err != nil {
			return nil, fmt.Errorf("create pod: %w", err)
		}
		pods[i] = pod
	}
	return pods, nil
}

// message of a pod's n-th status, by which it is found again.
func message(n int) string { return fmt.Sprintf("change %d", n) }

// withStatus returns the pod with its n-th status: the first is that of a pod
// that starts, later ones are of a running one whose readiness comes and goes.
func withStatus(pod *v1.Pod, n int, started time.Time) *v1.Pod {
	pod = pod.DeepCopy()
	at := metav1.NewTime(started).Rfc3339Copy()
	app := v1.ContainerStatus{Name: "app", Image: "example.com/web:1", Started: new(false)}
	phase, ready := v1.PodPending, v1.ConditionFalse
	if n == 1 {
		app.State.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"}
	} else {
		phase, app.Started = v1.PodRunning, new(true)
		app.State.Running = &v1.ContainerStateRunning{StartedAt: at}
		app.ContainerID, app.ImageID = "demo://"+string(pod.UID), "example.com/web@sha256:1"
		if app.Ready = n%3 != 0; app.Ready {
			ready = v1.ConditionTrue
		}
	}
	pod.Status = v1.PodStatus{
		Phase: phase, Message: message(n), QOSClass: v1.PodQOSBestEffort, StartTime: &at,
		HostIP: "192.0.2.1", HostIPs: []v1.HostIP{{IP: "192.0.2.1"}},
		ContainerStatuses: []v1.ContainerStatus{app},
	}
	for _, c := range []v1.PodCondition{
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
		{Type: v1.ContainersReady, Status: ready},
		{Type: v1.PodReady, Status: ready},
	} {
		c.LastTransitionTime = at
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	}
	return pod
}

// sameStatus ignores the order of conditions, which has no meaning.
func sameStatus(a, b v1.PodStatus) bool {
	byType := func(x, y v1.PodCondition) int { return cmp.Compare(x.Type, y.Type) }
	a.Conditions, b.Conditions = slices.Clone(a.Conditions), slices.Clone(b.Conditions)
	slices.SortFunc(a.Conditions, byType)
	slices.SortFunc(b.Conditions, byType)
	return equality.Semantic.DeepEqual(a, b)
}
