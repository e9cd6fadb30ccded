// SPDX-License-Identifier: Apache-2.0

// Command embedded is the smallest program with a durable status manager inside:
// it stores a status, closes the store, opens it anew and finds the status again.
//
//	go run ./examples/embedded DIR
package main

import (
	"context"
	"errors"
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

// run does both on a directory that exists.
func run(ctx context.Context, dir string, out io.Writer) error {
	options := manager.Options{
		Path:     filepath.Join(dir, journal.FileName),
		Software: "embedded example",
		// With Client and Node, Run(ctx) also keeps an API server up to date.
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "6f0c2f6e"}}
	if err := store(ctx, options, pod, v1.PodStatus{Phase: v1.PodRunning, Message: "stored"}, out); err != nil {
		return err
	}
	return show(options, pod, out)
}

func store(ctx context.Context, options manager.Options, pod *v1.Pod, status v1.PodStatus, out io.Writer) (err error) {
	m, err := manager.Open(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	change, err := m.SetPodStatus(ctx, pod, status)
	if err != nil {
		return err // nothing was stored
	}
	_, err = fmt.Fprintf(out, "version %d is on disk\n", change.Version)
	return err
}

func show(options manager.Options, pod *v1.Pod, out io.Writer) (err error) {
	m, err := manager.Open(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	status, ok := m.GetPodStatus(pod.UID)
	if !ok {
		return fmt.Errorf("the status of %s is lost", pod.Name)
	}
	_, err = fmt.Fprintf(out, "%s is %s: %s\n", pod.Name, status.Phase, status.Message)
	return err
}
