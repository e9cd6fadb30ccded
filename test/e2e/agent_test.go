// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries are the programs under test.
type binaries struct {
	agent string // statusstore
	dump  string // journal-dump
}

// buildPrograms builds what users build.
func buildPrograms(dir string) (binaries, error) {
	cmd := exec.Command("go", "build", "-C", "../..", "-o", dir+"/", "./cmd/statusstore", "./tools/journal-dump")
	if out, err := cmd.CombinedOutput(); err != nil {
		return binaries{}, fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return binaries{agent: filepath.Join(dir, "statusstore"), dump: filepath.Join(dir, "journal-dump")}, nil
}

// agent is one data directory and the process, if any, that runs on it.
type agent struct {
	dir        string
	node       string
	kubeconfig string // empty: no cluster
	args       []string

	client *socketClient
	cmd    *exec.Cmd
	exited chan error
	stderr *logBuffer
}

// newAgent makes a data directory for a node. Start is up to the test.
func newAgent(t *testing.T, node string) *agent {
	t.Helper()
	base := filepath.Join(filepath.Dir(plane.dir), "agents")
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "a")
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{dir: dir, node: node, kubeconfig: plane.kubeconfig, stderr: &logBuffer{}}
	t.Cleanup(func() {
		if a.running() {
			a.kill(t)
		}
		if t.Failed() {
			t.Logf("log of the agent of %s:\n%s", node, a.stderr.tail(8<<10))
		}
	})
	return a
}

func (a *agent) running() bool { return a.cmd != nil }
func (a *agent) pid() int      { return a.cmd.Process.Pid }

// start runs the agent and returns when it has said that it is ready.
func (a *agent) start(t *testing.T) {
	t.Helper()
	args := []string{"run", "--data-dir", a.dir, "--node", a.node}
	if a.kubeconfig != "" {
		args = append(args, "--kubeconfig", a.kubeconfig)
	}
	cmd := exec.Command(programs.agent, append(args, a.args...)...)
	cmd.Stderr = a.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, exited := make(chan string, 1), make(chan error, 1)
	go func() {
		// Read to the end before Wait, which closes the pipe.
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if socket, ok := strings.CutPrefix(lines.Text(), "ready socket="); ok {
				ready <- socket
			}
		}
		exited <- cmd.Wait()
	}()
	a.cmd, a.exited = cmd, exited
	select {
	case socket := <-ready:
		a.client = newSocketClient(socket)
	case err := <-exited:
		a.cmd = nil
		t.Fatalf("the agent ended before it was ready: %v\n%s", err, a.stderr.tail(8<<10))
	case <-time.After(30 * time.Second):
		a.kill(t)
		t.Fatalf("the agent was not ready after 30s\n%s", a.stderr.tail(8<<10))
	}
}

// kill sends SIGKILL and waits for the end.
func (a *agent) kill(t *testing.T) {
	t.Helper()
	if err := a.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill the agent: %v", err)
	}
	<-a.exited
	a.cmd = nil
}

// terminate sends SIGTERM and wants exit status 0 within 10 s.
func (a *agent) terminate(t *testing.T) {
	t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-a.exited:
		a.cmd = nil
		if err != nil {
			t.Errorf("after SIGTERM: got %v, want exit status 0", err)
		}
	case <-time.After(10 * time.Second):
		a.kill(t)
		t.Error("the agent runs on 10s after SIGTERM")
	}
}

// memory is what the kernel tells about a process, in KiB.
type memory struct{ rss, peak int }

func (m memory) String() string {
	return fmt.Sprintf("%.1f MiB, at most %.1f MiB", float64(m.rss)/1024, float64(m.peak)/1024)
}

func (a *agent) memory(t *testing.T) memory {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid()))
	if err != nil {
		t.Fatal(err)
	}
	var m memory
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		for name, at := range map[string]*int{"VmRSS:": &m.rss, "VmHWM:": &m.peak} {
			if f[0] != name {
				continue
			}
			if *at, err = strconv.Atoi(f[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.rss == 0 {
		t.Fatalf("no VmRSS of process %d", a.pid())
	}
	return m
}

// verifyJournal wants the journal of a stopped agent to be whole.
func (a *agent) verifyJournal(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(programs.dump, "verify", a.dir).CombinedOutput(); err != nil {
		t.Errorf("journal-dump verify: %v\n%s", err, out)
	}
}

// logBuffer keeps what a process writes.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b.Bytes()[max(0, l.b.Len()-n):])
}
