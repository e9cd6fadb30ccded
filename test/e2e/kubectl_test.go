// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	v1 "k8s.io/api/core/v1"
)

// buildKubectl builds the kubectl of the module below; minutes the first time.
func buildKubectl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(plane.dir), "bin", "kubectl")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", "kubectl", "-buildvcs=false", "-trimpath",
		"-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// startProxy runs "statusstore proxy" and returns its address.
func startProxy(t *testing.T, a *agent) string {
	t.Helper()
	cmd := exec.Command(programs.agent, "proxy", "--data-dir", a.dir)
	cmd.Stderr = a.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	return strings.TrimSpace(line)
}

// TestKubectl_ServerDown reads from the node with kubectl while the API server is
// away, as the documentation says.
func TestKubectl_ServerDown(t *testing.T) {
	kubectl := buildKubectl(t)
	ns := createNamespace(t, "kubectl")
	node := "node-" + ns
	pods := createPods(t, ns, node, 2)
	other := createNamespace(t, "kubectl")
	far := createPod(t, newPod(other, "far", node))
	a := newAgent(t, node)
	a.start(t)
	for _, pod := range append(pods, far) {
		a.client.mustSet(t, withStatus(pod, running(pod, "as it was")))
	}
	a.waitAcked(t, 3)
	plane.down(t)
	a.client.mustSet(t, withStatus(pods[1], succeeded(pods[1])))

	proxy := startProxy(t, a)
	home := t.TempDir()
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(home, "none"), "KUBECTL_KUBERC=false"}
	run := func(args ...string) string {
		t.Helper()
		out, err := runProgram(t, env, kubectl, append([]string{"--server", proxy}, args...)...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	wants := func(out string, lines ...string) {
		t.Helper()
		have := map[string]bool{}
		for line := range strings.Lines(out) {
			have[strings.Join(strings.Fields(line), " ")] = true
		}
		for _, want := range lines {
			found := false
			for line := range have {
				found = found || strings.HasPrefix(line, want)
			}
			if !found {
				t.Errorf("no line begins with %q:\n%s", want, out)
			}
		}
	}

	wants(run("get", "pods", "-A"), "NAMESPACE NAME READY STATUS RESTARTS AGE",
		ns+" p000 1/1 Running 0", ns+" p001 0/1 Completed 0", other+" far 1/1 Running 0")
	wants(run("get", "pods", "-n", ns, "-o", "wide"), "NAME READY STATUS RESTARTS AGE IP NODE", "p000 1/1 Running 0")
	if out := run("get", "pods", "-n", ns, "-o", "wide"); !strings.Contains(out, "10.1.2.3") || !strings.Contains(out, node) {
		t.Errorf("neither IP nor node:\n%s", out)
	}
	wants(run("get", "po", "-n", ns, "-l", "app=e2e", "--field-selector", "status.phase=Running", "-o", "name"), "pod/p000")
	out := run("describe", "pod", "p001", "-n", ns)
	wants(out, "Name: p001", "Status: Succeeded", "Node: "+node, "State: Terminated", "Reason: Completed")
	var shown v1.Pod
	if err := json.Unmarshal([]byte(run("get", "pod", "p001", "-n", ns, "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.UID != pods[1].UID || shown.Status.Phase != v1.PodSucceeded {
		t.Errorf("got %s %s, want %s Succeeded", shown.UID, shown.Status.Phase, pods[1].UID)
	}
	wants(run("get", "pod", "p000", "-n", ns, "-o", "yaml"), "kind: Pod", "phase: Running")
	if out, err := runProgram(t, env, kubectl, "--server", proxy, "get", "pod", "nope", "-n", ns); err == nil || !strings.Contains(out, `pods "nope" not found`) {
		t.Errorf("a pod that is not there: %v\n%s", err, out)
	}
	if out, err := runProgram(t, env, kubectl, "--server", proxy, "delete", "pod", "p000", "-n", ns); err == nil {
		t.Errorf("delete worked:\n%s", out)
	}

	watchWithKubectl(t, env, kubectl, proxy, ns, func(show func(string)) {
		show("p000 1/1 Running")
		status := running(pods[0], "not ready any more")
		status.ContainerStatuses[0].Ready = false
		a.client.mustSet(t, withStatus(pods[0], status))
		show("p000 0/1 Running")
	})
	plane.up(t)
	a.waitAcked(t, 3)
}

// watchWithKubectl runs "kubectl get pods -w"; show returns when a line begins with
// the words.
func watchWithKubectl(t *testing.T, env []string, kubectl, proxy, ns string, do func(show func(string))) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, kubectl, "--server", proxy, "get", "pods", "-n", ns, "-w")
	cmd.Env = env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(stdout)
	var seen []string
	do(func(want string) {
		t.Helper()
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("kubectl get -w: %v after %q, want %q", err, seen, want)
			}
			words := strings.Join(strings.Fields(line), " ")
			seen = append(seen, words)
			if strings.HasPrefix(words, want) {
				return
			}
		}
	})
	cancel()
	if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Log(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error(fmt.Errorf("kubectl get -w ended by itself"))
	}
}
