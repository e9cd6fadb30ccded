// SPDX-License-Identifier: Apache-2.0

// Command embedded is the smallest program with a durable status manager inside:
// it stores a status, forgets all it knows, as a crash would have it, and finds
// the status again.
//
//	go run ./examples/embedded DIR
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: embedded DIR")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, out io.Writer) error {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "6f0c2f6e"}}
	options := manager.Options{
		Path:     filepath.Join(dir, journal.FileName),
		Software: "embedded example",
		// With Client and Node, Run(ctx) also keeps an API server up to date.
	}

	m, err := manager.Open(options)
	if err != nil {
		return err
	}
	change, err := m.SetPodStatus(ctx, pod, v1.PodStatus{Phase: v1.PodRunning, Message: "stored"})
	if err != nil {
		return err // nothing was stored
	}
	fmt.Fprintf(out, "version %d is on disk\n", change.Version)
	if err := m.Close(); err != nil {
		return err
	}

	if m, err = manager.Open(options); err != nil {
		return err
	}
	defer m.Close()
	status, ok := m.GetPodStatus(pod.UID)
	if !ok {
		return fmt.Errorf("the status of %s is lost", pod.Name)
	}
	fmt.Fprintf(out, "%s is %s: %s\n", pod.Name, status.Phase, status.Message)
	return nil
}
