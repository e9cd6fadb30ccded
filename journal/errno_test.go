// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/statusstore/statusstore/internal/crash"
)

// causeEnv names the call that fails in the child, and how.
const causeEnv = "STATUSSTORE_TEST_CAUSE"

var failingCalls = []struct {
	call  crash.Syscall
	errno syscall.Errno
}{
	{crash.Ftruncate, syscall.ENOSPC}, {crash.Pwrite, syscall.ENOSPC}, {crash.Pwrite, syscall.EDQUOT}, {crash.Fdatasync, syscall.EIO},
	{crash.Fsync, syscall.EIO}, {crash.Fsync, syscall.EDQUOT}, {crash.Link, syscall.EROFS},
}

// TestG10_CausesAreKept: whatever call of the system fails, the error of creation,
// append, snapshot, compaction and salvage is that errno for errors.Is, also where
// the engine keeps only its text.
func TestG10_CausesAreKept(t *testing.T) {
	if spec := os.Getenv(causeEnv); spec != "" {
		failAll(t, spec)
		return
	}
	for i, f := range failingCalls {
		cmd := crash.Self([]string{fmt.Sprint(causeEnv, "=", i)}, "-test.run=^TestG10_CausesAreKept$", "-test.v")
		out, err := cmd.CombinedOutput()
		text := string(out)
		if strings.Contains(text, errors.ErrUnsupported.Error()) {
			t.Skip(text)
		}
		if err != nil {
			t.Errorf("%s fails with %v: %s", f.call, f.errno, text)
		}
		for line := range strings.Lines(text) {
			if s := strings.TrimSpace(line); strings.HasPrefix(s, "kept:") {
				t.Logf("%s, %v: %s", f.call, f.errno, s)
			}
		}
	}
}

func failAll(t *testing.T, spec string) {
	var i int
	if _, err := fmt.Sscan(spec, &i); err != nil {
		t.Fatal(err)
	}
	f, dir := failingCalls[i], fastDir(t)
	source := filled(t, 50)
	j, err := Open(filepath.Join(dir, "live.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, set("a", "1"))
	var fails atomic.Bool
	err = crash.Intercept(func(crash.Call) syscall.Errno {
		if fails.Load() {
			return f.errno
		}
		return 0
	}, f.call)
	if err != nil {
		t.Log(err)
		return
	}
	kept := 0
	fails.Store(true)
	for name, call := range map[string]func() error{
		"create":   func() error { _, err := Open(filepath.Join(dir, FileName), Options{}); return err },
		"append":   func() error { _, err := j.Append(t.Context(), set("a", "2")); return err },
		"snapshot": func() error { return j.Snapshot(t.Context(), filepath.Join(dir, "snapshot")) },
		"compact":  func() error { _, err := Compact(t.Context(), source, filepath.Join(dir, "compact")); return err },
		"salvage":  func() error { _, err := Salvage(t.Context(), source, filepath.Join(dir, "salvage")); return err },
	} {
		if err := call(); err != nil {
			if kept++; !errors.Is(err, f.errno) {
				t.Errorf("%s: %v is not %v", name, err, f.errno)
			}
		}
	}
	fails.Store(false)
	fmt.Printf("kept: %d calls failed\n", kept)
	if kept == 0 && f.call != crash.Link { // without links the file is renamed
		t.Error("nothing failed")
	}
}

func TestWithCause(t *testing.T) {
	tests := []struct {
		err  error
		want syscall.Errno // 0: none
	}{
		{nil, 0},
		{errors.New("file resize error: truncate journal.db: no space left on device"), syscall.ENOSPC},
		{errors.New("meta 0 copy: write copy.db: input/output error"), syscall.EIO},
		{fmt.Errorf("open: %w", syscall.EROFS), syscall.EROFS},
		{errors.New("mmap allocate error: cannot allocate memory"), syscall.ENOMEM},
		{errors.New("no space left on device, said somebody"), 0},
	}
	for _, tt := range tests {
		got := withCause(tt.err)
		errno, ok := errors.AsType[syscall.Errno](got)
		if ok != (tt.want != 0) || errno != tt.want || tt.err != nil && (got.Error() != tt.err.Error() || !errors.Is(got, tt.err)) {
			t.Errorf("%v: got %v, errno %v", tt.err, got, errno)
		}
	}
}
