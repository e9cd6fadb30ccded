// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/contrib/kubelet"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// Where a kubelet calls status.NewManager: the same parts, and a file.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	pods := kubepod.NewBasicPodManager()
	open := func() *kubelet.Manager {
		m, err := kubelet.New(kubelet.Options{
			Store:          manager.Options{Path: filepath.Join(dir, journal.FileName)}, // and Node, Client
			Pods:           pods,
			DeletionSafety: &host{}, // the kubelet itself
		})
		if err != nil {
			log.Fatal(err)
		}
		return m
	}

	m := open()
	var stock kubestatus.Manager = m // all that the kubelet sees
	stock.SetPodStatus(quiet, pod(), v1.PodStatus{Phase: v1.PodRunning})
	if err := m.Close(); err != nil {
		log.Fatal(err)
	}

	m = open() // a restart
	defer m.Close()
	status, ok := m.GetPodStatus("uid-web")
	fmt.Println(ok, status.Phase)
	// Output: true Running
}
