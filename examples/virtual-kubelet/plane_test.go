// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// launcher is the script that builds and runs control planes.
	launcher = "../../test/controlplane/controlplane.sh"

	// auditPolicy records who wrote what about pods.
	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: "", resources: ["pods", "pods/status"]}]
- level: None
`
)

// controlPlane is a kube-apiserver with etcd.
type controlPlane struct {
	dir, kubeconfig string
	client          kubernetes.Interface
}

// startPlane builds one, which takes minutes if nothing is cached, and starts it.
func startPlane(t *testing.T) *controlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("short: needs an API server")
	}
	build := exec.Command(launcher, "build")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	p := &controlPlane{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.launch("stop", "--kill"); err != nil {
			t.Error(err)
		}
	})
	if err := p.launch("start", "--", "--audit-policy-file="+policy, "--audit-log-path="+p.auditLog(),
		"--audit-log-mode=blocking", "--audit-log-maxsize=0"); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = -1, 0
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return p
}

// shortDir makes a folder for a control plane: not t.TempDir, whose paths are too long for
// sockets. With STATUSSTORE_E2E_DIR, whoever set it can end what a killed test leaves.
func shortDir(t *testing.T) string {
	t.Helper()
	parent := os.Getenv("STATUSSTORE_E2E_DIR")
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp(parent, "ssvk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (p *controlPlane) launch(command string, args ...string) error {
	out, err := exec.Command(launcher, append([]string{command, p.dir}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("control plane: %s: %w\n%s", command, err, out)
	}
	return nil
}

func (p *controlPlane) down(t *testing.T) {
	t.Helper()
	if err := p.launch("down", "--kill"); err != nil {
		t.Fatal(err)
	}
}

func (p *controlPlane) up(t *testing.T) {
	t.Helper()
	if err := p.launch("up"); err != nil {
		t.Fatal(err)
	}
}

func (p *controlPlane) auditLog() string { return filepath.Join(p.dir, "audit.log") }

// request is one that wrote to a pod.
type request struct {
	agent, what, name string // what: such as "patch pods/status"
	code              int
}

// requests returns those that were answered up to now.
func (p *controlPlane) requests(t *testing.T) []request {
	t.Helper()
	file, err := os.Open(p.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var requests []request
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return requests
		}
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Subresource, Name string }
			ResponseStatus  struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		what := strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		requests = append(requests, request{e.UserAgent, what, e.ObjectRef.Name, e.ResponseStatus.Code})
	}
}

// create makes pods on a node of the server and returns them as the server has them.
func (p *controlPlane) create(t *testing.T, node string, pods ...*v1.Pod) []*v1.Pod {
	t.Helper()
	var made []*v1.Pod
	for _, pod := range pods {
		pod = pod.DeepCopy()
		pod.UID, pod.Status, pod.Spec.NodeName = "", v1.PodStatus{}, node
		pod, err := p.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, pod)
	}
	return made
}

// pods reads the pods of a node from the server, by name.
func (p *controlPlane) pods(ctx context.Context, node string) (map[string]*v1.Pod, error) {
	_, byName, err := p.list(ctx, node)
	return byName, err
}

func (p *controlPlane) list(ctx context.Context, node string) (revision string, byName map[string]*v1.Pod, err error) {
	list, err := p.client.CoreV1().Pods("default").List(ctx, ofNode(node))
	if err != nil {
		return "", nil, err
	}
	byName = make(map[string]*v1.Pod)
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	return list.ResourceVersion, byName, nil
}

// mustPods is pods for a server that is there.
func (p *controlPlane) mustPods(t *testing.T, node string) map[string]*v1.Pod {
	t.Helper()
	pods, err := p.pods(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// watch returns the pods of a node, by name, and what happens to them from now on.
func (p *controlPlane) watch(t *testing.T, node string) (map[string]*v1.Pod, <-chan watch.Event) {
	t.Helper()
	revision, pods, err := p.list(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	o := ofNode(node)
	o.ResourceVersion = revision
	events, err := p.client.CoreV1().Pods("default").Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	return pods, events.ResultChan()
}

func ofNode(node string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "spec.nodeName=" + node}
}

// soon is how long a test waits for what must happen, as opposed to never.
const soon = 2 * time.Minute

// eventually repeats check until it returns nil, or fails the test with its last error.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s, after %s: %v", what, soon, err)
		}
	}
}
