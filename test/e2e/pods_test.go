// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creators bounds the requests that a test has in flight at a time.
const creators = 16

// createNamespace makes a namespace whose name begins with the given word.
func createNamespace(t *testing.T, word string) string {
	t.Helper()
	ns, err := plane.client.CoreV1().Namespaces().Create(t.Context(),
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: word + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// newPod is a pod with one container that was bound to a node.
func newPod(namespace, name, node string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "e2e"}},
		Spec: v1.PodSpec{
			NodeName:      node,
			RestartPolicy: v1.RestartPolicyNever,
			Containers:    []v1.Container{{Name: "app", Image: "registry.example/app:1"}},
		},
	}
}

// createPod makes the pod on the API server.
func createPod(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	created, err := plane.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// createPods makes n pods named p000, p001, …
func createPods(t *testing.T, namespace, node string, n int) []*v1.Pod {
	t.Helper()
	pods := make([]*v1.Pod, n)
	inParallel(t, n, func(i int) error {
		pod := newPod(namespace, fmt.Sprintf("p%03d", i), node)
		created, err := plane.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		pods[i] = created
		return err
	})
	return pods
}

// inParallel calls f(0) … f(n-1), a bounded number at a time.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, creators)
	errs := make([]error, n)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// livePod reads a pod from the API server.
func livePod(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	live, err := plane.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// livePods reads all pods of a namespace, by name.
func livePods(t *testing.T, namespace string) map[string]*v1.Pod {
	t.Helper()
	list, err := plane.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*v1.Pod, len(list.Items))
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return byName
}

// withStatus returns a copy of the pod with another status.
func withStatus(pod *v1.Pod, status v1.PodStatus) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Status = status
	return pod
}

// conditions in the order of a kubelet, all with one status.
func conditions(status v1.ConditionStatus) []v1.PodCondition {
	var all []v1.PodCondition
	for _, kind := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled} {
		all = append(all, v1.PodCondition{Type: kind, Status: status, LastTransitionTime: startTime})
	}
	return all
}

// startTime is long ago, so that nobody takes it for now.
var startTime = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// running is the status of a pod whose container runs; the message tells one
// such status from the next.
func running(pod *v1.Pod, message string) v1.PodStatus {
	return v1.PodStatus{
		Phase:      v1.PodRunning,
		Message:    message,
		HostIP:     "192.0.2.1",
		HostIPs:    []v1.HostIP{{IP: "192.0.2.1"}},
		PodIP:      "10.1.2.3",
		PodIPs:     []v1.PodIP{{IP: "10.1.2.3"}},
		StartTime:  &startTime,
		QOSClass:   v1.PodQOSBestEffort,
		Conditions: conditions(v1.ConditionTrue),
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "app", Ready: true, Started: new(true),
			Image: "registry.example/app:1", ImageID: "registry.example/app@sha256:1",
			ContainerID: "containerd://" + pod.Name,
			State:       v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: startTime}},
		}},
	}
}

// succeeded is the status of a pod whose container ended well.
func succeeded(pod *v1.Pod) v1.PodStatus {
	status := running(pod, "")
	status.Phase = v1.PodSucceeded
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady || c.Type == v1.ContainersReady {
			c.Status, c.Reason = v1.ConditionFalse, "PodCompleted"
		}
	}
	app := &status.ContainerStatuses[0]
	app.Ready, app.Started = false, new(false)
	app.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: startTime, FinishedAt: metav1.NewTime(startTime.Add(time.Minute)), ContainerID: app.ContainerID,
	}}
	return status
}

// sameStatus compares what a caller set with what the server shows. What the
// contract lets the store decide is left out: observed generation, and the
// transition times of conditions. Order of conditions counts for nothing.
func sameStatus(want, got v1.PodStatus) string {
	return cmp.Diff(want, got,
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(v1.PodStatus{}, "ObservedGeneration"),
		cmpopts.IgnoreFields(v1.PodCondition{}, "LastTransitionTime", "ObservedGeneration"),
		cmpopts.SortSlices(func(a, b v1.PodCondition) bool { return a.Type < b.Type }),
		cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
		cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) }),
	)
}

// assertLive wants each pod's status on the server to be the one that the pod
// object here holds.
func assertLive(t *testing.T, namespace string, want []*v1.Pod) {
	t.Helper()
	live := livePods(t, namespace)
	for _, pod := range want {
		got, ok := live[pod.Name]
		if !ok {
			t.Errorf("%s is gone from the server", pod.Name)
		} else if diff := sameStatus(pod.Status, got.Status); diff != "" {
			t.Errorf("%s on the server (-set +got):\n%s", pod.Name, diff)
		}
	}
}

// eventually repeats check until it returns nil. It fails the test with the last
// error when the time is over.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		err := check()
		if err == nil {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %s: %v", limit, err)
		}
	}
}

// waitAcked returns when the server holds the newest version of all pods.
func (a *agent) waitAcked(t *testing.T, pods int) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		s := a.client.status(t)
		if s.Pods != pods || s.Pending != 0 {
			return fmt.Errorf("%d pods, %d of them pending, want %d and 0 (last error: %s)", s.Pods, s.Pending, pods, s.LastSyncError)
		}
		return nil
	})
	for uid, r := range a.client.records(t) {
		if r.AckedVersion != r.Version || r.Version == 0 {
			t.Errorf("pod %s (%s): version %d, acked %d", r.Name, uid, r.Version, r.AckedVersion)
		}
	}
}

// quiet waits for longer than one periodic pass of the agent, so that what a
// pass would send is sent.
func quiet(t *testing.T, passes int) {
	t.Helper()
	select {
	case <-time.After(time.Duration(passes)*passInterval + 2*time.Second):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// passInterval is the agent's period of full passes.
const passInterval = 10 * time.Second
