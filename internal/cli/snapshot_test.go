// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statusstore/statusstore/journal"
)

// journalFile makes a journal with one event and returns its bytes.
func journalFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), journal.FileName)
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), journal.Event{Kind: journal.KindSet, UID: "u", Namespace: "n", Name: "p", ContentType: journal.ContentTypeProtobuf}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestG12_SnapshotMode(t *testing.T) {
	data := journalFile(t)
	path := serveSocket(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) })
	file := filepath.Join(t.TempDir(), "copy.db")
	defer syscall.Umask(syscall.Umask(0))
	code, out, errs := run(t, "snapshot", file, "--socket", path)
	if code != exitDone || !strings.Contains(out, "verified") {
		t.Fatalf("got %d: %s%s", code, out, errs)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("got mode %v, want 0600", info.Mode())
	}
	wantFiles(t, file, 1)
}

// TestG9_SnapshotRefused leaves the directory as it was.
func TestG9_SnapshotRefused(t *testing.T) {
	good := journalFile(t)
	damaged := append([]byte(nil), good...)
	// The records lie behind the two meta pages; much of the file is free.
	for i := 2 * os.Getpagesize(); i < len(damaged); i++ {
		damaged[i] ^= 0xff
	}
	tests := []struct {
		name   string
		answer []byte
		exists bool
		want   string
	}{
		{"file is there", good, true, "file already exists"},
		{"damaged on the way", damaged, false, "journal"},
		{"cut on the way", good[:3*os.Getpagesize()], false, "journal"},
		{"nothing", nil, false, "journal is empty"},
		{"something else", []byte("hello"), false, "journal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := serveSocket(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(tt.answer) })
			file := filepath.Join(t.TempDir(), "copy.db")
			files := 0
			if tt.exists {
				files = 1
				if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _, errs := run(t, "snapshot", file, "--socket", path)
			if code != exitFailed || !strings.Contains(errs, tt.want) {
				t.Errorf("got %d, %q, want %q", code, errs, tt.want)
			}
			if strings.Count(errs, "\n") != 1 {
				t.Errorf("stderr is not one line: %q", errs)
			}
			wantFiles(t, file, files)
			if data, err := os.ReadFile(file); tt.exists && (err != nil || string(data) != "mine") {
				t.Errorf("the file is now %q, %v", data, err)
			}
		})
	}
}

// wantFiles wants n files beside file, itself included.
func wantFiles(t *testing.T, file string, n int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != n {
		t.Errorf("got files %v, want %d", entries, n)
	}
}
