// SPDX-License-Identifier: Apache-2.0

package podsapi_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/contrib/podsapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// A program that embeds the manager serves its pods over a socket; another one asks.
func Example() {
	dir, err := os.MkdirTemp("", "pods") // only its owner may enter
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := manager.Open(manager.Options{Path: filepath.Join(dir, journal.FileName)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	socket := filepath.Join(dir, "pods.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := podsapi.New(store, podsapi.Options{}).Serve(ctx, listener); err != nil {
			log.Print(err)
		}
	})
	defer serving.Wait()
	defer cancel()

	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "uid-a"}}
	if _, err := store.SetPodStatus(ctx, pod, v1.PodStatus{Phase: v1.PodRunning}); err != nil {
		log.Fatal(err)
	}

	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	response, err := podsv1alpha1.NewPodsClient(conn).GetPod(ctx, &podsv1alpha1.GetPodRequest{PodUID: "uid-a"})
	if err != nil {
		log.Fatal(err)
	}
	var got v1.Pod
	if err := got.Unmarshal(response.Pod); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Namespace, got.Name, got.Status.Phase)
	// Output: default web-0 Running
}
