// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"log"
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
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "uid-a"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
	}
	status := v1.PodStatus{
		Phase:             v1.PodRunning,
		ContainerStatuses: []v1.ContainerStatus{{Name: "app", ContainerID: "containerd://c1"}},
	}

	options := manager.Options{Path: filepath.Join(dir, journal.FileName)}
	m, err := manager.Open(options)
	if err != nil {
		log.Fatal(err)
	}
	change, err := m.SetPodStatus(ctx, pod, status)
	if err != nil {
		log.Fatal(err) // nothing was stored
	}
	fmt.Println("durable as version", change.Version)
	if _, err := m.SetContainerReadiness(ctx, pod.UID, "containerd://c1", true); err != nil {
		log.Fatal(err)
	}
	if err := m.Close(); err != nil {
		log.Fatal(err)
	}

	m, err = manager.Open(options)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	entry, _ := m.Entry(pod.UID)
	stored, _ := m.GetPodStatus(pod.UID)
	fmt.Println("after the restart:", stored.Phase, stored.ContainerStatuses[0].Ready, "version", entry.Version)
	// Output:
	// durable as version 1
	// after the restart: Running true version 2
}
