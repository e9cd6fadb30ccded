// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
)

// childEnv says what a process of this binary is for; empty in the test itself.
const childEnv = "STATUSSTORE_CRASH_CHILD"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childEnv) {
	case "check":
		err = crash.Answer(os.Stdin, os.Stdout, checkImage)
	case "echo":
		err = crash.Answer(os.Stdin, os.Stdout, answerEcho)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type echo struct{ Text string }

// answerEcho is a child that can also be told to misbehave.
func answerEcho(q echo) echo {
	switch q.Text {
	case "exit":
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour) // the parent ends it
	}
	return q
}

// inChild runs the calling test again in a process of its own, where it finds
// role to be true, and returns what it printed. skipped is the reason if the
// child could not do its work on this system.
func inChild(t *testing.T, role string, env ...string) (out []byte, skipped string) {
	t.Helper()
	cmd := crash.Self(append(env, childEnv+"="+role), "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == exitUnsupported {
		return out, string(bytes.TrimSpace(out))
	}
	if err != nil {
		t.Fatalf("child %s: %v\n%s", role, err, out)
	}
	return out, ""
}

const exitUnsupported = 77

// unsupported ends a child that may not intercept system calls.
func unsupported(err error) {
	fmt.Println(err)
	os.Exit(exitUnsupported)
}

// number is a count from the environment, or the default for it.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" && raceDetector() {
		return max(1, usual/6)
	}
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a count", name, s)
	}
	return n
}

// fastDir is a directory in memory where there is one: what is tested is the
// order of calls, not the disk.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "statusstore-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// keep returns a directory that outlives the test.
func keep(t *testing.T) string {
	t.Helper()
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return t.ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "statusstore-crash-kept-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// raceDetector reports whether this is a run with -race, in which everything
// takes five times as long and the counts of the other run need no repetition.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
