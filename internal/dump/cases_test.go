// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
)

// C19: a garbled record is not a crash loop.
func TestC19_GarbledRecord(t *testing.T) {
	path := build(t, func(w *writer) { w.many(10, 10) })
	withBolt(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("events")).Put(key(10), []byte(`"}"}"}`))
	})
	check := untouched(t, path)
	got := run("-o", "ndjson", path)
	wantRun(t, got, exitFailed, path, "sequence 10", "journal is damaged")
	if seqs := sequences(got.events(t)); len(seqs) != 9 || seqs[0] != 1 || seqs[8] != 9 {
		t.Errorf("events: got %v, want 1 to 9", seqs)
	}
	check()
}

// C20: damaged page at open.
func TestC20_DamagedPage(t *testing.T) {
	healthy := build(t, func(w *writer) { w.many(100, 10) })
	content, err := os.ReadFile(healthy)
	if err != nil {
		t.Fatal(err)
	}
	pageSize := int(binary.LittleEndian.Uint32(content[24:]))
	zero := func(page int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[page*pageSize : (page+1)*pageSize]); return b }
	}
	freelist, root := 0, 0
	db, err := bolt.Open(healthy, 0, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.View(func(tx *bolt.Tx) error { root = int(tx.Bucket([]byte("events")).Root()); return nil }); err != nil {
		t.Fatal(err)
	}
	db.Close()
	meta := 0 // the newer one
	if binary.LittleEndian.Uint64(content[pageSize+64:]) > binary.LittleEndian.Uint64(content[64:]) {
		meta = pageSize
	}
	freelist = int(binary.LittleEndian.Uint64(content[meta+48:]))
	tests := []struct {
		name   string
		damage func([]byte) []byte
	}{
		{"page 0", zero(0)},
		{"pages 0 and 1", func(b []byte) []byte { return zero(0)(zero(1)(b)) }},
		{"freelist page", zero(freelist)},
		{"root of events", zero(root)},
		{"random page 4", func(b []byte) []byte { rand.Read(b[4*pageSize : 5*pageSize]); return b }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), journal.FileName)
			if err := os.WriteFile(path, tt.damage(bytes.Clone(content)), 0o600); err != nil {
				t.Fatal(err)
			}
			check := untouched(t, path)
			for _, verb := range []string{"events", "state", "stats", "verify"} {
				got := run(verb, path)
				if tt.name == "freelist page" || tt.name == "random page 4" {
					continue // may be in no page that is read; what counts is that it ends in order
				}
				wantRun(t, got, exitFailed, path)
			}
			check()
		})
	}
}

// C23: one flipped bit in the middle.
func TestC23_FlippedBit(t *testing.T) {
	path := build(t, func(w *writer) { w.many(1000, 100) })
	flip(t, path, 500)
	check := untouched(t, path)
	got := run("-o", "ndjson", path)
	wantRun(t, got, exitFailed, path, "sequence 500: checksum does not match", "1 place")
	seqs := sequences(got.events(t))
	if len(seqs) != 999 || slices.Contains(seqs, 500) || !slices.IsSorted(seqs) {
		t.Errorf("events: got %d, want the 999 others in order", len(seqs))
	}
	wantRun(t, run("verify", path), exitFailed, "journal is damaged")
	text := run(path)
	wantRun(t, text, exitFailed, "sequence 500")
	if n := len(text.lines()); n != 999 {
		t.Errorf("text: got %d lines, want 999", n)
	}
	check()
}

// C25: zero-length and tiny files.
func TestC25_NotAJournal(t *testing.T) {
	random := make([]byte, 100)
	rand.Read(random)
	tests := []struct {
		name    string
		content []byte
		want    string
	}{
		{"zero bytes", nil, "journal is empty"},
		{"100 bytes", random, "not a journal"},
		{"text", []byte(strings.Repeat("It was a dark night.\n", 500)), "not a journal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			check := untouched(t, path)
			got := run(path)
			wantRun(t, got, exitFailed, "cannot open "+path, tt.want)
			if got.out != "" {
				t.Errorf("stdout: got %q, want none", got.out)
			}
			check()
		})
	}
}

// C26: file shorter than it says.
func TestC26_Truncated(t *testing.T) {
	healthy := build(t, func(w *writer) { w.many(12000, 300) })
	content, err := os.ReadFile(healthy)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) < 3<<20 {
		t.Fatalf("the journal has only %d bytes", len(content))
	}
	for name, size := range map[string]int{"60 percent": len(content) * 6 / 10, "3 pages": 3 * os.Getpagesize()} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), journal.FileName)
			if err := os.WriteFile(path, content[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"events", "state", "verify", "stats"} {
				wantRun(t, run(verb, path), exitFailed, path, "truncated", fmt.Sprintf("it has %d bytes", size))
			}
		})
	}
}

// C27: file from a newer release.
func TestC27_NewerFormat(t *testing.T) {
	path := build(t, func(w *writer) { w.many(10, 2) })
	withBolt(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint32(nil, journal.Format+1))
	})
	check := untouched(t, path)
	got := run(path)
	wantRun(t, got, exitFailed, "newer format", fmt.Sprintf("format %d", journal.Format+1), fmt.Sprintf("up to %d", journal.Format), "newer one")
	if strings.Contains(got.err, "delete") || strings.Contains(got.err, "remove") {
		t.Errorf("stderr advises to delete: %q", got.err)
	}
	check()
}

// C53: dump while the agent runs.
func TestC53_InUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), journal.FileName)
	w := openWriter(t, path)
	w.many(10, 2)
	began := time.Now()
	got := run(path)
	wantRun(t, got, exitFailed, path, "in use", "--socket "+filepath.Join(filepath.Dir(path), "statusstore.sock"))
	if got.out != "" {
		t.Errorf("stdout: got %q, want none", got.out)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it waited for %v", took)
	}
	w.set("web-0", running("app")) // the writer goes on
}

// C54: dump of a damaged file.
func TestC54_ZeroedLeaf(t *testing.T) {
	path := build(t, func(w *writer) { w.many(500, 50) })
	lost := zeroLeafOf(t, path, 250)
	check := untouched(t, path)
	for _, form := range []string{"ndjson", "table", "json"} {
		got := run("-o", form, path)
		wantRun(t, got, exitFailed, path, fmt.Sprintf("events %d to %d are unreadable", lost[0], lost[len(lost)-1]), "journal is damaged")
		if strings.Contains(got.err, "cannot open") {
			t.Errorf("-o %s: stderr is that of a journal which cannot be opened: %q", form, got.err)
		}
		switch form {
		case "ndjson":
			seqs := sequences(got.events(t))
			if !slices.IsSorted(seqs) {
				t.Error("events are out of order")
			}
			for seq := journal.Sequence(1); seq <= 500; seq++ {
				if slices.Contains(seqs, seq) == slices.Contains(lost, seq) {
					t.Errorf("event %d: lost %v, printed %v", seq, slices.Contains(lost, seq), slices.Contains(seqs, seq))
				}
			}
		case "table":
			if got, want := len(got.lines()), 500-len(lost); got != want {
				t.Errorf("lines: got %d, want %d", got, want)
			}
			for _, line := range got.lines() { // nothing but events
				var seq int
				if _, err := fmt.Sscan(line, &seq); err != nil || slices.Contains(lost, journal.Sequence(seq)) {
					t.Errorf("line %q: %v", line, err)
				}
			}
		case "json":
			var events []Event
			if err := json.Unmarshal([]byte(got.out), &events); err != nil || len(got.lines()) != 1 {
				t.Errorf("json: got %d lines, %v", len(got.lines()), err)
			}
			if seqs := sequences(events); len(seqs) != 500-len(lost) || !slices.IsSorted(seqs) {
				t.Errorf("json: got %d events, want %d in order", len(seqs), 500-len(lost))
			}
		}
	}
	check()
}

// zeroLeafOf overwrites the leaf page of an event by zeros and returns the events
// that were on it.
func zeroLeafOf(t *testing.T, path string, seq int) (lost []journal.Sequence) {
	t.Helper()
	change(t, path, func(b []byte) []byte {
		page, ok := livePage(b, marker(seq))
		if !ok {
			t.Fatalf("no page with event %d", seq)
		}
		for i := range 501 {
			if i > 1 && bytes.Contains(page, []byte(marker(i))) {
				lost = append(lost, journal.Sequence(i))
			}
		}
		clear(page)
		return b
	})
	return lost
}

// livePage finds the page with a text that the newest tree reaches: the one with
// the most other events is the newest copy, since pages only fill up.
func livePage(b []byte, text string) (page []byte, ok bool) {
	size := int(binary.LittleEndian.Uint32(b[24:]))
	most := -1
	for at := 0; at+size <= len(b); at += size {
		p := b[at : at+size]
		if n := int(binary.LittleEndian.Uint16(p[10:])); bytes.Contains(p, []byte(text)) && n > most {
			page, most, ok = p, n, true
		}
	}
	return page, ok
}

// C55: foreign keys and buckets.
func TestC55_ForeignKeys(t *testing.T) {
	path := build(t, func(w *writer) { w.many(20, 5) })
	withBolt(t, path, func(tx *bolt.Tx) error {
		if err := tx.Bucket([]byte("events")).Put([]byte("alarm"), []byte("x")); err != nil {
			return err
		}
		other, err := tx.CreateBucket([]byte("other"))
		if err != nil {
			return err
		}
		return other.Put([]byte("k"), []byte("v"))
	})
	check := untouched(t, path)
	got := run("-o", "ndjson", path)
	wantRun(t, got, exitOK, `"alarm"`, `"other"`)
	if n := len(got.events(t)); n != 20 {
		t.Errorf("events: got %d, want 20", n)
	}
	wantRun(t, run("verify", path), exitOK, `"alarm"`, `"other"`)
	check()

	withBolt(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("events")).Put(key(21), []byte{})
	})
	got = run("-o", "ndjson", path)
	wantRun(t, got, exitFailed, `"alarm"`, `"other"`, "sequence 21: empty value")
	if n := len(got.events(t)); n != 20 {
		t.Errorf("events: got %d, want 20", n)
	}
	withBolt(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("events")).Put(key(7), []byte{})
	})
	got = run("-o", "ndjson", path)
	wantRun(t, got, exitFailed, `"alarm"`, `"other"`, "sequence 7")
	if n := len(got.events(t)); n != 19 {
		t.Errorf("events: got %d, want 19", n)
	}
}

// C56: the tool only reads.
func TestC56_OnlyReads(t *testing.T) {
	path := build(t, func(w *writer) { w.many(50, 5) })
	dir := filepath.Dir(path)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	check := untouched(t, path)
	for _, name := range []string{path, dir} {
		got := run(name)
		wantRun(t, got, exitOK)
		if n := len(got.lines()); n != 50 {
			t.Errorf("%s: got %d lines, want 50", name, n)
		}
	}
	check()

	empty := t.TempDir()
	wantRun(t, run(filepath.Join(empty, "missing.db")), exitFailed, "missing.db", "no such file")
	wantRun(t, run(empty), exitFailed, empty, "directory without a journal.db")
	if entries, err := os.ReadDir(empty); err != nil || len(entries) != 0 {
		t.Errorf("directory: got %v, %v; want nothing created", entries, err)
	}
}

// C61: terminal control characters in dumped text.
func TestC61_ControlCharacters(t *testing.T) {
	path := build(t, func(w *writer) {
		s := running("app")
		s.Message = "ok\x1b]52;c;QUJD\x07\x1b[2J \x7f \u009b31m \u202e tab\there"
		s.Reason = "two\r\nlines"
		w.set("web-0", s)
		next := s.DeepCopy()
		next.Message += "\x1b[2J and more, so much more that it does not fit on one line of eighty columns\x7f"
		next.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "a\nb", Message: "\x1b]0;x\x07"}}
		w.set("web-0", next)
	})
	for _, args := range [][]string{
		{path}, {"-o", "wide", path}, {"-o", "json", path}, {"-o", "ndjson", path}, {"-o", "yaml", path}, {"-p", path}, {"-p", "-o", "ndjson", path},
		{"state", path}, {"state", "-o", "wide", path}, {"state", "-o", "yaml", path}, {"state", "-o", "json", path},
		{"diff", path, "2", "3"}, {"diff", "-o", "yaml", path, "2", "3"}, {"why", path, "web-0"}, {"why", path, "web-0", "-o", "yaml"},
		{"unsynced", path}, {"unsynced", "-o", "yaml", path}, {"stats", path}, {"export", path}, {"why", path, "web-0\x1b[2J"},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args[:len(args)-1], " "), path, ""), func(t *testing.T) {
			got := run(args...)
			if got.code != exitOK && args[len(args)-1] != "web-0\x1b[2J" {
				t.Errorf("exit status %d: %s", got.code, got.err)
			}
			for _, s := range []string{got.out, got.err} {
				if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f }); i >= 0 {
					t.Errorf("control character in %q", s[max(0, i-20):])
				}
			}
			if got.code == exitOK && args[0] != "stats" && args[0] != "unsynced" && !strings.Contains(got.out, "52;c;QUJD") {
				t.Errorf("the text is not to be recognised: %q", got.out)
			}
		})
	}
	for _, form := range []string{"table", "wide", "ndjson"} {
		got := run("-o", form, path)
		if n := len(got.lines()); n != 3 {
			t.Errorf("-o %s: got %d lines for 3 events", form, n)
		}
		if !strings.Contains(got.out, `two\r\nlines`) {
			t.Errorf("-o %s: the reason is not to be recognised: %q", form, got.out)
		}
	}
}
