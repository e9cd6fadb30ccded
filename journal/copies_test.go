// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lived makes a journal, has backup copy it at version 3 of "a", and goes on to
// version 8. It returns the newest event, of the closed journal.
func lived(t *testing.T, path string, backup func(j *Journal)) Event {
	t.Helper()
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, set("a", "1"), set("a", "2"), set("a", "3"), set("gone", "1"), removed("gone"))
	backup(j)
	j, err = Open(path, Options{})
	if errors.Is(err, ErrLocked) { // backup left it open
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, set("a", "4"), set("a", "5"), set("a", "6"), set("a", "7"), set("unknown to the copy", "1"))
	last := mustAppend(t, j, set("a", "8"))[0]
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

func put(t *testing.T, from, to string) {
	t.Helper()
	if err := copyFile(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestG2_CopyPutBack: a copy in the place of a newer journal gives no version, no
// sequence and no epoch away that the newer one could have given away.
func TestG2_CopyPutBack(t *testing.T) {
	closed := func(t *testing.T, j *Journal) {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := func(t *testing.T, j *Journal, to string) {
		if err := j.Snapshot(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		closed(t, j)
	}
	tests := []struct {
		name   string
		backup func(t *testing.T, j *Journal, to string)
		// restore, if not nil, replaces putting the copy over the journal.
		restore func(t *testing.T, copied, path string) string
		origin  origin
	}{
		{"snapshot", snapshot, nil, originSnapshot},
		{"snapshot in another directory", snapshot, func(t *testing.T, copied, _ string) string { return copied }, originSnapshot},
		{"snapshot file", func(t *testing.T, j *Journal, to string) {
			f, err := j.SnapshotFile(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			defer closed(t, j)
			w, err := os.Create(to)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.ReadFrom(f); err != nil {
				t.Fatal(err)
			}
		}, nil, originSnapshot},
		{"compacted snapshot", snapshot, func(t *testing.T, copied, path string) string {
			out := filepath.Join(t.TempDir(), "out.db")
			if _, err := Compact(t.Context(), copied, out); err != nil {
				t.Fatal(err)
			}
			put(t, out, path)
			return path
		}, originSnapshot},
		{"salvaged copy", func(t *testing.T, j *Journal, to string) { closed(t, j); put(t, j.path, to) },
			func(t *testing.T, copied, path string) string {
				_, out := salvage(t, copied)
				put(t, out, path)
				return path
			}, originSnapshot},
		{"cp of the closed file", func(t *testing.T, j *Journal, to string) { closed(t, j); put(t, j.path, to) }, nil, originOlder},
		{"cp of the open file", func(t *testing.T, j *Journal, to string) { put(t, j.path, to); closed(t, j) }, nil, originOlder},
		{"cp without the mark", func(t *testing.T, j *Journal, to string) { closed(t, j); put(t, j.path, to) },
			func(t *testing.T, copied, _ string) string { return copied }, originNoMark},
		{"another file", func(t *testing.T, j *Journal, to string) {
			closed(t, j)
			other := filepath.Join(t.TempDir(), FileName)
			k, err := Open(other, Options{})
			for range 10 { // opened more often
				if err != nil {
					t.Fatal(err)
				}
				mustAppend(t, k, set("a", "1"))
				k = reopen(t, k)
			}
			closed(t, k)
			put(t, other, to)
		}, nil, originOther},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, copied := filepath.Join(t.TempDir(), FileName), filepath.Join(t.TempDir(), FileName)
			last := lived(t, path, func(j *Journal) { tt.backup(t, j, copied) })
			if tt.restore == nil {
				put(t, copied, path)
			} else {
				path = tt.restore(t, copied, path)
			}
			j := open(t, path, Options{})
			events := all(t, j)
			if got := events[len(events)-1].Attributes[AttrRestored]; got != string(tt.origin) {
				t.Errorf("restored %q, want %q", got, tt.origin)
			}
			got := mustAppend(t, j, set("a", "another 4"), set("unknown to the copy", "1"), set("gone", "back"))
			for _, e := range got {
				if e.Version <= copyLeap || e.Sequence <= last.Sequence+copyLeap/2 || e.Epoch <= last.Epoch+copyLeap/2 {
					t.Errorf("%s: version %d sequence %d epoch %d, after %d %d %d", e.UID, e.Version, e.Sequence, e.Epoch, last.Version, last.Sequence, last.Epoch)
				}
			}
			// It leaps once.
			for range 2 {
				j = reopen(t, j)
				again := mustAppend(t, j, set("a", "5"))[0]
				if again.Version != got[0].Version+1 || again.Epoch != got[0].Epoch+1 {
					t.Errorf("version %d after %d, epoch %d after %d", again.Version, got[0].Version, again.Epoch, got[0].Epoch)
				}
				got[0] = again
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			verify(t, path)
		})
	}
}

// TestG2_NoCopy: what happens to a journal every day is no copy.
func TestG2_NoCopy(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	check := func(what string, want Version) {
		t.Helper()
		got := mustAppend(t, j, set("a", what))[0]
		if got.Version != want {
			t.Errorf("%s: version %d, want %d", what, got.Version, want)
		}
	}
	j = reopen(t, j)
	check("restart", 2)

	// A crash: the file as it is, nothing is closed.
	crash := func(change func(path string)) {
		t.Helper()
		path := filepath.Join(t.TempDir(), FileName)
		put(t, j.path, path)
		put(t, j.path+MarkSuffix, path+MarkSuffix)
		change(path)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		k, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		j = k
	}
	crash(func(string) {})
	check("crash", 3)
	crash(func(path string) { markOfOldRelease(t, path) })
	check("first start of this release", 4)
	crash(func(path string) {
		s, err := readMark(path)
		s.Epoch, s.Head = s.Epoch-1, s.Head-1 // the crash came before the mark was written
		if _, other := writeMark(path, s); errors.Join(err, other) != nil {
			t.Fatal(err, other)
		}
	})
	check("crash while opening", 5)

	// Compacting the stopped journal loses nothing.
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	out := j.path + ".out"
	if _, err := Compact(t.Context(), j.path, out); err != nil {
		t.Fatal(err)
	}
	put(t, out, j.path)
	k, err := Open(j.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	j = k
	defer k.Close()
	check("compacted", 6)
}

// TestG2_CopyAndCrash: a crash between the mark and the opened event of a copy does
// not make it an original.
func TestG2_CopyAndCrash(t *testing.T) {
	path := filled(t, 5)
	s, err := readMark(path)
	if err := errors.Join(err, os.Remove(path+MarkSuffix)); err != nil {
		t.Fatal(err)
	}
	if err := mark(path, originNoMark, s); err != nil {
		t.Fatal(err)
	}
	if got := mustAppend(t, open(t, path, Options{}), set("pod-2", "next"))[0]; got.Version <= copyLeap {
		t.Errorf("version %d", got.Version)
	}
}

// TestMarkOnFullDisk: an open succeeds when the mark cannot be written again.
func TestMarkOnFullDisk(t *testing.T) {
	var log strings.Builder
	path := filled(t, 5)
	if err := os.Remove(path + MarkSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path+MarkSuffix, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path, Options{Logger: textLogger(&log)})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil || !strings.Contains(log.String(), "initialised mark cannot be written") {
		t.Errorf("close %v, log %q", err, log.String())
	}
}
