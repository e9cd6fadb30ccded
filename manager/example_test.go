// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// The smallest embedding: store a status, stop, start again, and it is there.
func Example() {
	dir, err := os.MkdirTemp("", "statusstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	options := manager.Options{Path: filepath.Join(dir, journal.FileName)}

	m, err := manager.Open(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "uid-a"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
	}
	change, err := m.SetPodStatus(ctx, pod, v1.PodStatus{
		Phase:             v1.PodRunning,
		ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "containerd://c1"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stored version", change.Version)

	outcome, err := m.SetContainerReadiness(ctx, pod.UID, "containerd://c1", true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("readiness", outcome)
	if err := m.Close(); err != nil {
		fmt.Println(err)
		return
	}

	m, err = manager.Open(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	entry, _ := m.Entry(pod.UID)
	status, _ := m.GetPodStatus(pod.UID)
	fmt.Println("after the restart:", status.Phase, status.ContainerStatuses[0].Ready, "version", entry.Version)
	// Output:
	// stored version 1
	// readiness applied
	// after the restart: Running true version 2
}
