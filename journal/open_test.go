// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	leftover := filepath.Join(dir, FileName+creatingSuffix+"123")
	other := filepath.Join(dir, "somebody-else.tmp")
	for _, name := range []string{leftover, other} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := open(t, path, Options{Node: "node-a"})
	if got := names(t, dir); strings.Join(got, " ") != FileName+" "+FileName+MarkSuffix+" somebody-else.tmp" {
		t.Errorf("directory holds %v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if got := j.Info(); got.Node != "node-a" || got.Format != Format || got.Created.IsZero() || got.Suspect {
		t.Errorf("info %+v", got)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestG2_EpochRisesAtEachOpen(t *testing.T) {
	j := openNew(t, Options{})
	for want := Epoch(1); want < 5; want++ {
		got := mustAppend(t, j, set("a", "1"))[0]
		if got.Epoch != want {
			t.Errorf("epoch %d, want %d", got.Epoch, want)
		}
		j = reopen(t, j)
		if !j.WasClean() {
			t.Error("not clean after Close")
		}
	}
}

// TestG8_RefusedFiles: what is not a whole journal is refused by name, and stays
// as it is, both for writing and for reading.
func TestG8_RefusedFiles(t *testing.T) {
	good := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), FileName)
		j, err := Open(path, Options{Node: "node-a"})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			mustAppend(t, j, set("a", strings.Repeat("status", 100)))
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edit := func(change func(b []byte) []byte) func(*testing.T) string {
		return func(t *testing.T) string {
			path := good(t)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(b), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	content := func(b []byte) func(*testing.T) string { return edit(func([]byte) []byte { return b }) }
	inBolt := func(change func(tx *bolt.Tx) error) func(*testing.T) string {
		return func(t *testing.T) string {
			path := good(t)
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	zero := func(from, to int) func(b []byte) []byte {
		return func(b []byte) []byte { clear(b[from:to]); return b }
	}
	tests := []struct {
		name string
		make func(*testing.T) string
		want error
		text string
	}{
		{"C25 empty", content(nil), ErrEmpty, "empty"},
		{"C25 100 bytes", content(bytes.Repeat([]byte{0xA7}, 100)), ErrNotJournal, "not a journal"},
		{"C25 text", content(bytes.Repeat([]byte("some text\n"), 1024)), ErrNotJournal, "not a journal"},
		{"C26 60 percent", edit(func(b []byte) []byte { return b[:10*4096] }), ErrTruncated, "bytes"},
		{"C26 three pages", edit(func(b []byte) []byte { return b[:3*4096] }), ErrTruncated, "12288"},
		{"C20 both metas", edit(zero(0, 8192)), ErrNotJournal, "both are destroyed"},
		{"C27 newer format", inBolt(func(tx *bolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keyFormat, formatValue(Format+1))
		}), ErrNewerFormat, "format 2, this program reads up to 1"},
		{"foreign bbolt file", inBolt(func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketMeta) }), ErrNotJournal, "another program"},
		{"a bucket is missing", inBolt(func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketAcks) }), ErrCorrupt, "acks"},
		{"head damaged", inBolt(func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyHead, []byte("head")) }), ErrCorrupt, "head"},
		{"index damaged", inBolt(func(tx *bolt.Tx) error { return tx.Bucket(bucketPods).Put([]byte("a"), []byte("a")) }), ErrCorrupt, "pods"},
		{"C19 newest event garbled", inBolt(func(tx *bolt.Tx) error {
			return tx.Bucket(bucketEvents).Put(sequenceKey(51), []byte(`"}"}"}`))
		}), ErrCorrupt, "sequence 51"},
		{"newest event missing", inBolt(func(tx *bolt.Tx) error { return tx.Bucket(bucketEvents).Delete(sequenceKey(51)) }), ErrCorrupt, "sequence 51"},
		{"directory", func(t *testing.T) string { return t.TempDir() }, ErrNotJournal, "a directory, not a regular file"},
		{"named pipe", namedPipe, ErrNotJournal, "a named pipe, not a regular file"},
		{"device", func(*testing.T) string { return os.DevNull }, ErrNotJournal, "a device, not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.make(t)
			before := digest(path)
			_, err := Open(path, Options{})
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open: %v", err)
			}
			r, err := OpenReadOnly(path, ReadOptions{})
			if err == nil {
				// Readers show what is good; the damage is in what they read then.
				for _, e := range r.Newest() {
					err = errors.Join(err, e)
				}
				r.Close()
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("reading: %v", err)
			}
			if strings.Contains(tt.text, "regular file") {
				if _, err := Salvage(t.Context(), path, filepath.Join(t.TempDir(), "out")); !errors.Is(err, tt.want) {
					t.Errorf("salvage: %v", err)
				}
			}
			if after := digest(path); after != before {
				t.Error("the file changed")
			}
		})
	}
}

// namedPipe would have whoever opens it wait for ever.
func namedPipe(t *testing.T) string {
	path := filepath.Join(t.TempDir(), FileName)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// digest of what is no regular file is that of nothing.
func digest(path string) [32]byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return sha256.Sum256(nil)
	}
	b, _ := os.ReadFile(path)
	return sha256.Sum256(b)
}

func TestG8_MissingJournalWithMark(t *testing.T) {
	j := openNew(t, Options{})
	j.Close()
	os.Remove(j.path)
	if _, err := Open(j.path, Options{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), MarkSuffix) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(j.path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a journal was created in place of the lost one")
	}
	os.Remove(j.path + MarkSuffix)
	open(t, j.path, Options{})
}

func TestOpenWithoutDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	if _, err := Open(filepath.Join(dir, FileName), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenReadOnly(filepath.Join(dir, FileName), ReadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was created")
	}
}

func TestOpenDanglingLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.Symlink(filepath.Join(t.TempDir(), "nowhere"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWrongNode(t *testing.T) {
	j := openNew(t, Options{Node: "node-a"})
	j.Close()
	if _, err := Open(j.path, Options{Node: "node-b"}); !errors.Is(err, ErrWrongNode) || !strings.Contains(err.Error(), "node-a") {
		t.Errorf("got %v", err)
	}
	open(t, j.path, Options{Node: "node-a"})
}

// C57: second agent on the same file.
func TestC57_SecondOpen(t *testing.T) {
	j := openNew(t, Options{})
	for name, second := range map[string]func() error{
		"writer": func() error { _, err := Open(j.path, Options{LockTimeout: time.Millisecond}); return err },
		"reader": func() error { _, err := OpenReadOnly(j.path, ReadOptions{LockTimeout: time.Millisecond}); return err },
	} {
		if err := second(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), j.path) {
			t.Errorf("second %s: %v", name, err)
		}
	}
	mustAppend(t, j, set("a", "1"))
}

// TestG2_SuspectOpen: if the newest meta page is gone, bbolt silently opens the
// commit before it. The journal says so and gives no version away twice.
func TestG2_SuspectOpen(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	mustAppend(t, j, set("b", "1"))
	lost := mustAppend(t, j, set("a", "2"))[0]
	path := filepath.Join(t.TempDir(), FileName)
	if err := j.Snapshot(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(j.path) // live: as a crash would leave it
	if err != nil {
		t.Fatal(err)
	}
	first, _ := parseBoltMeta(b)
	second, _ := parseBoltMeta(b[4096:])
	newest := 0
	if second.txid > first.txid {
		newest = 4096
	}
	b[newest+pageHeaderSize+20] ^= 1
	crashed := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(crashed, b, 0o600); err != nil {
		t.Fatal(err)
	}
	markOfOldRelease(t, crashed)
	k := open(t, crashed, Options{})
	if !k.Info().Suspect {
		t.Error("not suspect")
	}
	got := mustAppend(t, k, set("a", "3"), set("b", "2"), set("new", "1"))
	if got[0].Version <= lost.Version {
		t.Errorf("version %d was given away before the crash", lost.Version)
	}
	if got[1].Version != 3 || got[2].Version != 2 {
		t.Errorf("versions %d and %d, want one skipped for each pod, known or not", got[1].Version, got[2].Version)
	}
	if again := mustAppend(t, k, set("a", "4"))[0]; again.Version != got[0].Version+1 {
		t.Errorf("version %d after %d: skipped twice", again.Version, got[0].Version)
	}
}

// C21: move the broken file aside, once.
func TestC21_MoveAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if err := errors.Join(os.WriteFile(path, []byte("broken"), 0o600), mark(path, original, markState{})); err != nil {
		t.Fatal(err)
	}
	before := digest(path)
	aside, err := MoveAside(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(aside) != filepath.Dir(path) || digest(aside) != before {
		t.Errorf("moved to %s", aside)
	}
	open(t, path, Options{})
}
