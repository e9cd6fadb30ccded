// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar against the real agent, without a
// cluster. Beside testscript's own commands there are
//
//	exits CODE COMMAND...   run a command that ends with this code
//	await COMMAND...        run a command until it succeeds
//	mode FILE PERM          check a file's permissions
//	terminal FILE COMMAND... run a command on a terminal; what it shows is in the file
//
// $STATUSSTORE_SOCKET is where the commands look for the agent, and
// $STATUSSTORE_CONFIG names a file that puts its socket there; the path is short, as it must be.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		// An agent that starts where it should refuse would run for ever.
		Deadline: time.Now().Add(3 * time.Minute),
		Setup: func(env *testscript.Env) error {
			dir, err := os.MkdirTemp("", "s")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(dir) })
			env.Setenv("STATUSSTORE_SOCKET", filepath.Join(dir, "s"))
			// The variable is for the commands only; the agent has a file.
			config := filepath.Join(dir, "c.yaml")
			if err := os.WriteFile(config, []byte("version: 1\nsocket: "+filepath.Join(dir, "s")+"\n"), 0o600); err != nil {
				return err
			}
			env.Setenv("STATUSSTORE_CONFIG", config)
			// A program built with -race waits for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "await": await, "mode": mode, "terminal": terminal,
		},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("got exit code %d, want %d", got, want)
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: await COMMAND...")
	}
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); err == nil {
			return
		}
	}
	ts.Fatalf("still fails: %v", err)
}

func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode FILE PERM")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := info.Mode().Perm(); strconv.FormatUint(uint64(got), 8) != args[1] {
		ts.Fatalf("%s: got mode %o, want %s", args[0], got, args[1])
	}
}
