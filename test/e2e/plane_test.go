// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// launcher is the script that builds and runs control planes.
const launcher = "../controlplane/controlplane.sh"

// auditPolicy records who asked for what, and the answer's code, but no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: ["pods", "pods/status"]}]
- level: None
`

// controlPlane is a kube-apiserver with etcd.
type controlPlane struct {
	dir        string
	kubeconfig string
	flags      []string // of the API server, beside the launcher's
	config     *rest.Config
	client     kubernetes.Interface
}

func buildControlPlane() error {
	cmd := exec.Command(launcher, "build")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// startControlPlane starts one with additional flags for the API server.
func startControlPlane(dir string, flags ...string) (*controlPlane, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &controlPlane{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	p.flags = append(flags,
		"--audit-policy-file="+policy,
		"--audit-log-path="+p.auditLog(),
		"--audit-log-mode=blocking", // what a client has seen answered is in the log
		"--audit-log-maxsize=0",     // one file: no rotation
	)
	err := p.start()
	if err != nil {
		return nil, err
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.kubeconfig); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.config.QPS, p.config.Burst = -1, 0
	p.config.UserAgent = "e2e"
	if p.client, err = kubernetes.NewForConfig(p.config); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// usePlane lets one test have a control plane with other flags.
func usePlane(t *testing.T, flags ...string) {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(plane.dir), "plane")
	if err != nil {
		t.Fatal(err)
	}
	other, err := startControlPlane(dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	shared := plane
	plane = other
	t.Cleanup(func() {
		plane = shared
		if err := other.stop(); err != nil {
			t.Error(err)
		}
	})
}

// launch runs one command of the launcher on this control plane.
func (p *controlPlane) launch(command string, args ...string) error {
	out, err := exec.Command(launcher, append([]string{command, p.dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("control plane: %s: %w\n%s", command, err, out)
	}
	return nil
}

// start runs the control plane, on the data of the last time if there was one.
func (p *controlPlane) start() error     { return p.launch("start", append([]string{"--"}, p.flags...)...) }
func (p *controlPlane) stop() error      { return p.launch("stop", "--kill") }
func (p *controlPlane) auditLog() string { return filepath.Join(p.dir, "audit.log") }

// down kills the API server until up or the end of the test.
func (p *controlPlane) down(t *testing.T) {
	t.Helper()
	if err := p.launch("down", "--kill"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.client.Discovery().ServerVersion(); err != nil {
			p.up(t)
		}
	})
}

// up starts the API server again.
func (p *controlPlane) up(t *testing.T) {
	t.Helper()
	if err := p.launch("up"); err != nil {
		t.Fatal(err)
	}
}
