// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// plane is a kube-apiserver with etcd.
type plane struct {
	launcher string
	dir      string
	config   *rest.Config // unlimited
	admin    kubernetes.Interface
}

// startPlane runs one in a new folder. The first build takes minutes.
func startPlane(ctx context.Context, launcher string) (*plane, error) {
	build := exec.CommandContext(ctx, launcher, "build")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the control plane: %w", err)
	}
	dir, err := os.MkdirTemp("", "compare-plane")
	if err != nil {
		return nil, err
	}
	p := &plane{launcher: launcher, dir: dir}
	if out, err := exec.CommandContext(ctx, launcher, "start", dir).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w\n%s", err, out), p.stop())
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig()); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.config.QPS, p.config.ContentType = -1, runtime.ContentTypeProtobuf
	if p.admin, err = kubernetes.NewForConfig(p.config); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *plane) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

func (p *plane) stop() error {
	err := exec.Command(p.launcher, "stop", p.dir, "--kill").Run()
	return errors.Join(err, os.RemoveAll(p.dir))
}

// limit is a client's rate limit; QPS -1 is none.
type limit struct {
	QPS   float32
	Burst int
}

// The limits that are compared: the kubelet's default, and none.
var (
	kubeletLimit = limit{50, 100}
	unlimited    = limit{-1, 0}
)

func (l limit) String() string {
	if l.QPS < 0 {
		return "unlimited"
	}
	return fmt.Sprintf("QPS %.0f/%d", l.QPS, l.Burst)
}
