// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/statusstore/statusstore/journal"
)

// fixtures are the journals of all kinds that a command may meet, by file name.
func fixtures(t *testing.T) map[string]string {
	t.Helper()
	damaged := build(t, func(w *writer) { w.many(60, 3) })
	flip(t, damaged, 30)
	newer := build(t, func(w *writer) { w.many(10, 2) })
	withBolt(t, newer, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint32(nil, journal.Format+1))
	})
	dir := t.TempDir()
	text, other := filepath.Join(dir, "text"), filepath.Join(dir, "other")
	if err := os.WriteFile(text, []byte(strings.Repeat("It was a dark night.\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	withBolt(t, other, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("registry")); return err })
	return map[string]string{"night.db": night(t), "empty.db": build(t, nil), "damaged.db": damaged, "newer.db": newer, "text.db": text, "other.db": other}
}

// TestScripts runs testdata/script/*.txtar, each in a folder with all fixtures.
// Beside testscript's own commands there are
//
//	exits CODE COMMAND...   run a command that ends with this code
//	socket FILE             make a socket that nobody serves
//	inuse FILE              hold the file as an agent does, until the script ends
//	steady                  make what differs between machines the same in stdout, for cmp steady
//	unchanged               check that all journals are as they were, and none came but OUT*
//
// Each script ends with unchanged. -update writes what cmp compares with anew.
func TestScripts(t *testing.T) {
	all := fixtures(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Deadline:            time.Now().Add(3 * time.Minute),
		Condition: func(name string) (bool, error) {
			if name != "mounts" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt").Run() == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("TMPDIR", filepath.Join(env.WorkDir, ".tmp"))
			for name, path := range all {
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), content, 0o600); err != nil {
					return err
				}
			}
			env.Values["before"] = listing(env.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits, "inuse": inUse, "socket": makeSocket, "steady": makeSteady, "unchanged": unchanged},
	})
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) < 8 {
		t.Errorf("%d scripts, %v", len(scripts), err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if script, _, _ := strings.Cut(string(text), "\n-- "); !strings.HasSuffix(strings.TrimSpace(script), "\nunchanged") {
			t.Errorf("%s does not end with unchanged", path)
		}
	}
}

// listing has each journal's name, mode, time and content, but what a script
// writes: OUT*.
func listing(dir string) string {
	var b strings.Builder
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "OUT") || filepath.Ext(e.Name()) != ".db" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		fmt.Fprintf(&b, "%s %v %d %x %v\n", e.Name(), info.Mode(), info.ModTime().UnixNano(), content, err)
	}
	return b.String()
}

func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: unchanged")
	}
	if now := listing(ts.MkAbs(".")); now != ts.Value("before") {
		ts.Fatalf("files were changed or came to be")
	}
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

// inUse holds a file as the engine does: its lock is of the whole file.
func inUse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: inuse FILE")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	ts.Defer(func() { f.Close() })
}

func makeSocket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: socket FILE")
	}
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	ts.Check(l.Close())
}

func makeSteady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: steady")
	}
	ts.Check(os.WriteFile(ts.MkAbs("OUT.steady"), []byte(steady(ts.ReadFile("stdout"))), 0o600))
}

// TestEveryCommand_OnlyReads: whatever a file is, and whatever the command, its
// bytes, its times and its folder stay as they are. A verb that is not in the table
// fails the test.
func TestEveryCommand_OnlyReads(t *testing.T) {
	behind := map[string][]string{"events": nil, "state": nil, "diff": {"1", "2"}, "why": {"web-0"}, "unsynced": nil, "stats": nil, "verify": nil, "export": nil,
		"timeline": nil, "compact": {"OUT"}, "salvage": {"OUT"}}
	variants := map[string][][]string{"events": {{}, {"-p"}, {"-o", "json"}}, "export": {{}, {"--format", "otlp"}, {"--format", "events"}}, "timeline": {{}, {"--out", "OUT"}}}
	all := fixtures(t)
	for _, c := range NewCommand(nil, nil, nil).Commands() {
		verb := c.Name()
		if verb == "completion" || verb == "help" {
			continue
		}
		args, known := behind[verb]
		if !known {
			t.Errorf("the command %s is not in this test's table", verb)
			continue
		}
		flags := variants[verb]
		if flags == nil {
			flags = [][]string{{}}
		}
		for name, fixture := range all {
			for _, f := range flags {
				line := append(append([]string{verb}, f...), append([]string{fixture}, args...)...)
				out := filepath.Join(t.TempDir(), "out")
				for i := range line {
					if line[i] == "OUT" {
						line[i] = out
					}
				}
				check := untouched(t, fixture)
				got := run(line...)
				if sound := name == "night.db"; (got.code == exitOK) != sound && name != "empty.db" && verb != "salvage" && verb != "diff" && name != "damaged.db" {
					t.Errorf("%s %s: exit code %d: %s", verb, name, got.code, got.err)
				}
				check()
			}
		}
		missing := filepath.Join(t.TempDir(), "missing.db")
		got := run(append([]string{verb, missing}, args...)...)
		if left, _ := os.ReadDir(filepath.Dir(missing)); got.code != exitFailed || len(left) != 0 || !strings.Contains(got.err, "missing.db") {
			t.Errorf("%s of a missing file: exit code %d, left %v: %s", verb, got.code, left, got.err)
		}
		if left, err := os.Stat("OUT"); err == nil {
			t.Errorf("%s of a missing file made %s", verb, left.Name())
			os.Remove("OUT")
		}
	}
}
