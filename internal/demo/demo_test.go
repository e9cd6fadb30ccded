// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/statusstore/statusstore/internal/cli"
	"github.com/statusstore/statusstore/internal/demo"
	"github.com/statusstore/statusstore/journal"
)

// saboteurs run an agent after they have broken something in its data directory.
// The first start of a demo finds no journal there.
var saboteurs = map[string]func(path string) error{
	"run":         func(string) error { return nil },
	"forget-acks": forgetAcks,
	"lose-file":   func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	"never-ready": func(string) error { return errors.New("broken from the start") },
}

// TestMain makes the test binary an agent, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if sabotage, ok := saboteurs[os.Args[1]]; ok {
			os.Exit(runAgent(sabotage, os.Args[2:]))
		}
	}
	goleak.VerifyTestMain(m)
}

func runAgent(sabotage func(path string) error, args []string) int {
	dir := args[slices.Index(args, "--data-dir")+1]
	if err := sabotage(filepath.Join(dir, journal.FileName)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cli.Main(append([]string{"run"}, args...), os.Stdin, os.Stdout, os.Stderr)
}

func forgetAcks(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	acks, err := j.Acks()
	for uid := range acks {
		j.ForgetAck(uid)
	}
	return errors.Join(err, j.Flush(context.Background()), j.Close())
}

func agentCommand(t *testing.T, verb string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, verb}
}

// TestDemo is the demo as it is, with fewer pods.
func TestDemo(t *testing.T) {
	var progress bytes.Buffer
	report, err := demo.Run(t.Context(), demo.Options{Pods: 20, Agent: agentCommand(t, "run"), Progress: &progress})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if err := report.Err(); err != nil {
		t.Errorf("%v\n%s", err, &progress)
	}
	if report.Accepted < 40 || report.Journaled < report.Accepted || report.Patched != 16 {
		t.Errorf("got %+v, want at least 40 accepted statuses, all journalled, and news of 16 pods", report)
	}
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^accepted +\d\d+ `, `(?m)^journalled +\d\d+ `, `(?m)^lost +0 `, `(?m)^re-sent +0 `,
		`(?m)^requests +1 LIST, 1 WATCH, 0 GET, 16 PATCH `, `(?m)^requests +1 LIST, 1 WATCH, 0 GET, 0 PATCH `, `(?m)^converged +\d+\.\ds `,
	} {
		if !regexp.MustCompile(want).Match(printed.Bytes()) {
			t.Errorf("printed\n%swant a match of %s", &printed, want)
		}
	}
}

// TestDemo_Broken runs it with agents that break a promise.
func TestDemo_Broken(t *testing.T) {
	tests := []struct{ verb, want string }{
		{"forget-acks", "the acks of 5 pods did not survive"},
		{"lose-file", "accepted statuses are lost"},
	}
	for _, tt := range tests {
		t.Run(tt.verb, func(t *testing.T) {
			t.Parallel() // mostly waiting
			report, err := demo.Run(t.Context(), demo.Options{Pods: 5, Agent: agentCommand(t, tt.verb), StepTimeout: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Err(); !errors.Is(err, demo.ErrBroken) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDemo_AgentFails shows what the agent said, and leaves nothing behind.
func TestDemo_AgentFails(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	_, err := demo.Run(t.Context(), demo.Options{Pods: 1, Agent: agentCommand(t, "never-ready")})
	if err == nil || !strings.Contains(err.Error(), "broken from the start") {
		t.Errorf("got %v, want what the agent said", err)
	}
	wantEmpty(t, os.TempDir())
}

// TestDemo_Interrupted ends the agent and removes all files.
func TestDemo_Interrupted(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := demo.Run(ctx, demo.Options{Pods: 5, Agent: agentCommand(t, "run"), Progress: cancelOn{"network is down", cancel}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	wantEmpty(t, os.TempDir())
}

// cancelOn cancels when a text is written.
type cancelOn struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelOn) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.text) {
		c.cancel()
	}
	return len(p), nil
}

func TestDemo_DataDirIsKept(t *testing.T) {
	dir := filepath.Join(shortDir(t), "data")
	o := demo.Options{Pods: 2, Agent: agentCommand(t, "run"), DataDir: dir}
	report, err := demo.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := r.Verify(t.Context(), nil); err != nil || result.Problems > 0 || result.Events < uint64(report.Accepted) {
		t.Errorf("verify: %+v, %v", result, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := demo.Run(t.Context(), o); !errors.Is(err, demo.ErrOptions) {
		t.Errorf("on the same directory again: got %v, want %v", err, demo.ErrOptions)
	}
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("left behind in %s: %v", dir, entries)
	}
}
