// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestREADME runs the commands of README.md as they stand there.
func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("short: needs an API server")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of commands, want one", len(blocks))
	}
	temp, path := shortDir(t), os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err != nil {
		path = buildKubectl(t) + ":" + path
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", blocks[0][1])
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "PATH="+path, "GOFLAGS=-buildvcs=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what it starts can be ended with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	out := string(output)
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly nothing is left
		planes, _ := filepath.Glob(filepath.Join(temp, "*", "kubeconfig"))
		for _, kubeconfig := range planes {
			if err := (&controlPlane{dir: filepath.Dir(kubeconfig)}).launch("stop", "--kill"); err != nil {
				t.Error(err)
			}
		}
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Count(out, "phase=Pending"); got != 1 {
		t.Errorf("the pod was run %d times, want once", got)
	}
	for _, want := range []string{"phase=Failed restarts=0", " Error ", "app ended with exit code 3"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// buildKubectl builds the kubectl of the end-to-end tests, which takes minutes if nothing
// is cached, and returns its folder.
func buildKubectl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", "../../test/e2e/kubectl", "-buildvcs=false", "-trimpath",
		"-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "kubectl"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return dir
}
