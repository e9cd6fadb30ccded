// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		os.Exit(appendUntilKilled(path))
	}
	if os.Getenv(causeEnv) != "" {
		os.Exit(m.Run()) // the one who answers for system calls stays
	}
	goleak.VerifyTestMain(m)
}

// open opens a journal for a test; when the test ends the file is closed and
// verified.
func open(t *testing.T, path string, o Options) *Journal {
	t.Helper()
	j, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if !t.Failed() {
			verify(t, path)
		}
	})
	return j
}

// fastDir is a directory in memory where there is one, for tests that make
// thousands of commits and are not about the disk.
func fastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "statusstore-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// openNew opens a new journal in a directory of its own.
func openNew(t *testing.T, o Options) *Journal {
	t.Helper()
	return openNewIn(t, t.TempDir(), o)
}

func openNewIn(t *testing.T, dir string, o Options) *Journal {
	t.Helper()
	return open(t, filepath.Join(dir, FileName), o)
}

// reopen closes a journal and opens its file again.
func reopen(t *testing.T, j *Journal) *Journal {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	o := j.opts
	next, err := Open(j.path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close() })
	return next
}

// markOfOldRelease puts an initialised mark beside a file that a test has copied,
// so that it is not taken for one that was put back.
func markOfOldRelease(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path+MarkSuffix, []byte(markText), 0o600); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, path string) {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// t.Context is done by the time cleanups run.
	if _, err := r.Verify(context.Background(), func(p Problem) { t.Errorf("verify: %v", p) }); err != nil {
		t.Error(err)
	}
}

func set(uid types.UID, status string) Event {
	return Event{Kind: KindSet, Reason: ReasonSet, UID: uid, Namespace: "default", Name: "pod-" + string(uid),
		ContentType: ContentTypeProtobuf, Status: []byte(status)}
}

func removed(uid types.UID) Event {
	return Event{Kind: KindRemoved, Reason: ReasonOrphaned, UID: uid, Namespace: "default", Name: "pod-" + string(uid)}
}

func finished(uid types.UID, status string) Event {
	e := set(uid, status)
	e.Kind, e.Reason = KindFinished, ""
	return e
}

func mustAppend(t *testing.T, j *Journal, events ...Event) []Event {
	t.Helper()
	got, err := j.Append(t.Context(), events...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func all(t *testing.T, j *Journal) []Event {
	t.Helper()
	var events []Event
	for e, err := range j.Events(1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// raceDetector reports whether this is a run with -race, in which everything
// takes five times as long and the counts of the other run need no repetition.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
