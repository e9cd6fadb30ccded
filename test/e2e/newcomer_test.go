// SPDX-License-Identifier: Apache-2.0

package e2e

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

// TestNewcomer runs the commands of docs/getting-started.md as they stand there,
// in one shell, from a copy of this clone.
func TestNewcomer(t *testing.T) {
	const page = "../../docs/getting-started.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 8 {
		t.Fatalf("%s has only %d blocks of commands", page, len(blocks))
	}
	for _, b := range blocks {
		script += b[1]
	}
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("sh", "-c", `mkdir "$1" && cd ../.. && tar -cf - --exclude=./.git --exclude=./bin --exclude=./test . | tar -xf - -C "$1"`, "sh", clone).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v\n%s", err, out)
	}
	// Not t.TempDir: the path of a socket is short.
	temp, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	kubectl := buildKubectl(t)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.kubeconfig, "TMPDIR="+temp,
		"PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"), "GOFLAGS=-buildvcs=false")
	// What the script starts ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a script that failed has left; mostly nothing
	if err != nil {
		logs, _ := exec.Command("sh", "-c", `tail -n 5 "$1"/*/log`, "sh", temp).CombinedOutput()
		t.Fatalf("%v\n%s\nlogs:\n%s", err, out, logs)
	}
	for _, want := range []string{
		"ready socket=", "pod/web-1 created", "Evicted", "removed", "pod/web-1 version 1", "pod/web-1 version 2",
		"events, head", "phase: Failed",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
