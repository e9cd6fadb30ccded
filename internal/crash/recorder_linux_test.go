// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/statusstore/statusstore/internal/crash"
	"golang.org/x/sys/unix"
)

func dataSync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fdatasync(int(f.Fd())), f.Close())
}

// TestCrashRecorder: what a sync orders is durable, and nothing else is: neither
// data that was not synced, nor a name whose directory was not.
func TestCrashRecorder(t *testing.T) {
	dir := os.Getenv("STATUSSTORE_CRASH_OUT")
	if os.Getenv(childEnv) != "record" {
		if _, skipped := inChild(t, "record", "STATUSSTORE_CRASH_OUT="+fastDir(t)); skipped != "" {
			t.Skip(skipped)
		}
		return
	}
	r, err := crash.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Attach(); err != nil {
		unsupported(err)
	}
	r.Expect("begin", 0, 0)
	temp, path := filepath.Join(dir, "temp"), filepath.Join(dir, "file")
	synced := bytes.Repeat([]byte("synced  "), 1000)
	steps := []struct {
		name string
		do   func() error
		// may says whether there may be no file, an empty or partial one, all of it.
		absent, partial, whole bool
	}{
		{"written", func() error { return os.WriteFile(temp, synced, 0o600) }, true, false, false},
		{"renamed without a sync", func() error { return os.Rename(temp, path) }, true, true, true},
		{"data synced, size not", func() error { return dataSync(path) }, true, true, true},
		{"data synced", func() error { return syncFile(path) }, true, false, true},
		{"name synced", func() error { return syncFile(dir) }, false, false, true},
		{"removed", func() error { return os.Remove(path) }, true, false, true},
		{"removal synced", func() error { return syncFile(dir) }, true, false, false},
	}
	for i, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		r.Expect(s.name, i+1, i+1)
		r.Rest()
	}
	log, err := r.Log()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		var absent, partial, whole bool
		rest := &crash.Log{Pages: log.Pages}
		for _, stage := range log.Stages {
			if stage.From == i+1 && stage.Label == s.name+": at rest" {
				rest.Stages = append(rest.Stages, stage)
			}
		}
		for _, image := range drawAll(t, rest, 200) {
			got, ok := image["file"]
			absent = absent || !ok
			whole = whole || got == string(synced)
			partial = partial || ok && got != string(synced)
		}
		if absent != s.absent || partial != s.partial || whole != s.whole {
			t.Errorf("%s: absent %v, partial %v, whole %v", s.name, absent, partial, whole)
		}
	}
}
