// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
)

// diskRule says what happens to the journal's system calls while it is in force.
type diskRule struct {
	Calls []crash.Syscall
	// Errno is what they fail with; crash.Short lets half of a write pass.
	Errno syscall.Errno
	// From is the first of them that is meant, counted from 1 since the rule is in
	// force; Once leaves those after it alone.
	From int
	Once bool
	// Delay is how long they take before anything else happens to them.
	Delay time.Duration
}

var (
	writes  = []crash.Syscall{crash.Pwrite}
	syncs   = []crash.Syscall{crash.Fsync, crash.Fdatasync}
	changes = []crash.Syscall{crash.Pwrite, crash.Fsync, crash.Fdatasync, crash.Fallocate, crash.Ftruncate}
)

// disk is the way from the test to what the agent's process finds below it. It is
// a folder beside the data directory; an agent that starts without one has
// nothing between itself and the disk.
type disk struct {
	t   *testing.T
	dir string
}

func diskOf(dataDir string) string { return dataDir + ".disk" }

// newDisk makes one for the agents of a data directory that start from now on.
func newDisk(t *testing.T, dataDir string) *disk {
	t.Helper()
	d := &disk{t, diskOf(dataDir)}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d.heal()
	return d
}

// fail puts rules in force: the next call meets them.
func (d *disk) fail(rules ...diskRule) {
	d.t.Helper()
	data, err := json.Marshal(rules)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "next"), data, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(d.dir, "next"), filepath.Join(d.dir, "rules"))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) heal() { d.fail() }

// hits is how often a rule applied so far.
func (d *disk) hits() int {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.dir, "hits"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return len(b)
}

// In the agent's process: the disk is there before anything else is.
func init() {
	settings, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	var c childConfig
	if err := json.Unmarshal([]byte(settings), &c); err != nil || !exists(diskOf(c.Dir)) {
		return // runChild says what is wrong
	}
	if err := underRules(diskOf(c.Dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUnsupported)
	}
}

// underRules puts this process' calls under the rules in dir.
func underRules(dir string) error {
	hits, err := os.OpenFile(filepath.Join(dir, "hits"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	var text string
	var rules []diskRule
	var counts []int
	return crash.Intercept(func(call crash.Call) syscall.Errno {
		if call.FD >= 0 && !strings.HasSuffix(call.Path, "/"+journal.FileName) {
			return 0
		}
		data, err := os.ReadFile(filepath.Join(dir, "rules"))
		if err != nil {
			return 0 // the test is over
		}
		if string(data) != text {
			text, rules = string(data), nil
			if err := json.Unmarshal(data, &rules); err != nil {
				panic(err)
			}
			counts = make([]int, len(rules))
		}
		for i, r := range rules {
			if !slices.Contains(r.Calls, call.Name) {
				continue
			}
			if counts[i]++; counts[i] < r.From || r.Once && counts[i] > max(1, r.From) {
				continue
			}
			_, _ = hits.WriteString("!") // only counted
			time.Sleep(r.Delay)
			return r.Errno
		}
		return 0
	}, changes...)
}
