// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/projection"
)

// report is one line of the program's output: a status that is stored.
type report struct {
	name     string
	uid      types.UID
	version  journal.Version
	phase    v1.PodPhase
	restarts int32
}

// child is the program, run by the test binary. It is started and killed again and again
// on the same data.
type child struct {
	plane         *controlPlane
	node, dataDir string
	cmd           *exec.Cmd
	read          chan struct{} // closed when the output was read to its end

	// mu guards the fields below.
	mu      sync.Mutex
	newest  map[types.UID]report // of all runs
	created map[types.UID]int    // how often a pod's first status was reported
	lines   int
}

func newChild(t *testing.T, plane *controlPlane, node string) *child {
	t.Helper()
	c := &child{
		plane: plane, node: node, dataDir: filepath.Join(t.TempDir(), "data"),
		newest: make(map[types.UID]report), created: make(map[types.UID]int),
	}
	t.Cleanup(func() {
		if c.cmd != nil {
			c.kill(t)
		}
		logs, err := os.ReadFile(c.logs())
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(logs, []byte("WARNING: DATA RACE")) { // and a killed process can't fail
			t.Error("the race detector has found something")
		}
		if t.Failed() {
			t.Logf("the program's log ends with:\n%s", logs[max(0, len(logs)-8<<10):])
		}
	})
	return c
}

func (c *child) logs() string { return c.dataDir + ".log" }

func (c *child) start(t *testing.T) {
	t.Helper()
	logs, err := os.OpenFile(c.logs(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	cmd := exec.Command(os.Args[0], "--kubeconfig", c.plane.kubeconfig, "--node", c.node, "--data-dir", c.dataDir)
	cmd.Env = append(os.Environ(), childVar+"=1")
	cmd.Stderr = logs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.cmd, c.read = cmd, make(chan struct{})
	go func() {
		defer close(c.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.note(lines.Text())
		}
	}()
}

// note keeps what a line of output says. The last one of a killed process may be cut off.
func (c *child) note(line string) {
	var r report
	if _, err := fmt.Sscanf(line, "stored %s %s version=%d phase=%s restarts=%d", &r.name, &r.uid, &r.version, &r.phase, &r.restarts); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines++
	c.newest[r.uid] = r
	if r.phase == v1.PodPending {
		c.created[r.uid]++
	}
}

func (c *child) reports() map[types.UID]report {
	c.mu.Lock()
	defer c.mu.Unlock()
	reports := make(map[types.UID]report, len(c.newest))
	for uid, r := range c.newest {
		reports[uid] = r
	}
	return reports
}

// creations returns how often a pod's first status was stored.
func (c *child) creations(uid types.UID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.created[uid]
}

// count returns how many statuses were stored.
func (c *child) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines
}

// waitStored waits until n more statuses are stored.
func (c *child) waitStored(t *testing.T, n int) {
	t.Helper()
	begin := c.count()
	eventually(t, "statuses change", func() error {
		if got := c.count() - begin; got < n {
			return fmt.Errorf("%d of %d are stored", got, n)
		}
		return nil
	})
}

// terminate sends SIGTERM and wants exit status 0.
func (c *child) terminate(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { c.cmd.Process.Kill() })
	defer hung.Stop()
	<-c.read
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	c.cmd = nil
}

// kill sends SIGKILL, and returns when all that the process reported was read.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-c.read
	c.cmd.Wait() // says that it was killed
	c.cmd = nil
}

// stored reads what is in the store of a killed process, and compares it with what was
// reported.
func (c *child) stored(t *testing.T) map[types.UID]*v1.PodStatus {
	t.Helper()
	entries := readJournal(t, c.dataDir)
	statuses := make(map[types.UID]*v1.PodStatus)
	for uid, r := range c.reports() {
		e, ok := entries[uid]
		if !ok || e.Version < r.version {
			t.Errorf("%s: version %d was reported as stored, the store has %+v", r.name, r.version, e)
			continue
		}
		statuses[uid] = e.Status
	}
	return statuses
}

// copyJournal copies the journal of a process that does not write now to a folder of its
// own, which it returns.
func copyJournal(t *testing.T, dataDir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dataDir, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journal.FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readJournal returns what is stored of each pod; from a copy, because opening changes the
// journal.
func readJournal(t *testing.T, dataDir string) map[types.UID]*projection.Entry {
	t.Helper()
	m, err := manager.Open(manager.Options{Path: filepath.Join(copyJournal(t, dataDir), journal.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	entries := make(map[types.UID]*projection.Entry)
	for _, e := range m.Entries() {
		entries[e.UID] = e
	}
	return entries
}
