// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// noon is long ago, so that nobody takes it for now.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newPod is a pod with a restart policy; annotations come as pairs.
func newPod(name string, policy v1.RestartPolicy, annotations ...string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}},
		Spec:       v1.PodSpec{RestartPolicy: policy, Containers: []v1.Container{{Name: "app", Image: "app:1"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort},
	}
	for i := 0; i < len(annotations); i += 2 {
		pod.Annotations[annotations[i]] = annotations[i+1]
	}
	return pod
}

// life follows a pod's statuses, each as "seconds phase containerState restarts ready",
// until none follows or there are n.
func life(pod *v1.Pod, n int) string {
	var lines []string
	var stored *v1.PodStatus
	for since := noon; len(lines) < n; {
		status, due, ok := next(pod, stored, since)
		if !ok {
			break
		}
		line := fmt.Sprintf("%.1f %s", due.Sub(noon).Seconds(), status.Phase)
		if len(status.ContainerStatuses) > 0 {
			c := status.ContainerStatuses[0]
			switch {
			case c.State.Waiting != nil:
				line += " waiting"
			case c.State.Running != nil:
				line += " running"
			case c.State.Terminated != nil:
				line += fmt.Sprint(" exit ", c.State.Terminated.ExitCode)
			}
			line += fmt.Sprintf(" restarts %d ready %t", c.RestartCount, c.Ready)
		}
		lines = append(lines, line)
		stored, since = &status, due
	}
	return strings.Join(lines, "\n")
}

func TestNext(t *testing.T) {
	withInit := newPod("a", v1.RestartPolicyAlways)
	withInit.Spec.InitContainers = []v1.Container{{Name: "init"}}
	tests := []struct {
		name string
		pod  *v1.Pod
		want string
	}{
		{"runs until it is deleted", newPod("a", v1.RestartPolicyAlways), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true`},
		{"succeeds", newPod("a", v1.RestartPolicyNever, runsForKey, "5s"), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true
5.0 Succeeded exit 0 restarts 0 ready false`},
		{"fails", newPod("a", v1.RestartPolicyNever, runsForKey, "5s", exitCodeKey, "3"), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true
5.0 Failed exit 3 restarts 0 ready false`},
		{"is restarted", newPod("a", v1.RestartPolicyAlways, runsForKey, "5s"), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true
5.0 Running exit 0 restarts 0 ready false
5.1 Running running restarts 1 ready true
10.1 Running exit 0 restarts 1 ready false`},
		{"is restarted on failure", newPod("a", v1.RestartPolicyOnFailure, runsForKey, "5s", exitCodeKey, "3"), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true
5.0 Running exit 3 restarts 0 ready false
5.1 Running running restarts 1 ready true
10.1 Running exit 3 restarts 1 ready false`},
		{"succeeds on failure policy", newPod("a", v1.RestartPolicyOnFailure, runsForKey, "5s"), `
0.0 Pending waiting restarts 0 ready false
0.0 Running running restarts 0 ready true
5.0 Succeeded exit 0 restarts 0 ready false`},
		{"bad time", newPod("a", v1.RestartPolicyAlways, runsForKey, "soon"), "\n0.0 Failed"},
		{"no time", newPod("a", v1.RestartPolicyAlways, runsForKey, "0s"), "\n0.0 Failed"},
		{"bad exit code", newPod("a", v1.RestartPolicyAlways, exitCodeKey, "256"), "\n0.0 Failed"},
		{"init containers", withInit, "\n0.0 Failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := life(tt.pod, 5); got != strings.TrimPrefix(tt.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, tt.want)
			}
		})
	}
}

// TestNext_Times takes the times from when the last status was stored, not from when
// somebody looks.
func TestNext_Times(t *testing.T) {
	pod := newPod("a", v1.RestartPolicyNever, runsForKey, "5s")
	first := waiting(pod, noon)
	running := started(pod, &first, noon)
	status, _, _ := next(pod, &running, noon)
	end := status.ContainerStatuses[0].State.Terminated
	if got, want := end.FinishedAt.Time, noon.Add(5*time.Second); !got.Equal(want) {
		t.Errorf("finished at %s, want %s", got, want)
	}
	if !end.StartedAt.Time.Equal(noon) || end.ContainerID != running.ContainerStatuses[0].ContainerID {
		t.Errorf("got end %+v, want start and ID of the running container", end)
	}
	if status.QOSClass != v1.PodQOSBestEffort || running.ContainerStatuses[0].State.Terminated != nil {
		t.Error("the given status was changed, or what the server has set is lost")
	}
}
