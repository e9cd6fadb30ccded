// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/statusstore/statusstore/journal"
)

// TestEveryVerb runs each verb on each kind of file: the exit code is right and
// the file is as before.
func TestEveryVerb(t *testing.T) {
	damaged := build(t, func(w *writer) { w.many(60, 6) })
	flip(t, damaged, 30)
	newer := build(t, nil)
	withBolt(t, newer, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{0, 0, 0, journal.Format + 1})
	})
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	withBolt(t, foreign, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err })
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("It was a dark night.\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(t.TempDir(), journal.FileName)
	openWriter(t, locked)
	missing := filepath.Join(t.TempDir(), "missing.db")
	nothing := t.TempDir()
	if err := os.Mkdir(filepath.Join(nothing, "data"), 0o700); err != nil {
		t.Fatal(err)
	}

	files := []struct {
		name, path string
		code       int
		stderr     string
	}{
		{"healthy", tale(t), exitOK, ""},
		{"empty", build(t, nil), exitOK, ""},
		{"damaged", damaged, exitFailed, "30"},
		{"newer format", newer, exitFailed, "newer format"},
		{"foreign bbolt file", foreign, exitFailed, "bbolt file of another program"},
		{"in use", locked, exitFailed, "in use"},
		{"missing", missing, exitFailed, "no such file"},
		{"directory without one", filepath.Join(nothing, "data"), exitFailed, "directory without"},
		{"text file", text, exitFailed, "not a journal"},
	}
	verbs := []struct {
		name string
		args func(path string) []string
	}{
		{"default", func(p string) []string { return []string{p} }},
		{"events", func(p string) []string { return []string{"events", p} }},
		{"events -p", func(p string) []string { return []string{"events", "-p", p} }},
		{"state", func(p string) []string { return []string{"state", p} }},
		{"state --at", func(p string) []string { return []string{"state", "--at", "now", p} }},
		{"unsynced", func(p string) []string { return []string{"unsynced", p} }},
		{"diff", func(p string) []string { return []string{"diff", p, "1", "now"} }},
		{"why", func(p string) []string { return []string{"why", p, "web-0"} }},
		{"stats", func(p string) []string { return []string{"stats", p} }},
		{"verify", func(p string) []string { return []string{"verify", p} }},
		{"export", func(p string) []string { return []string{"export", p} }},
		{"export --format otlp", func(p string) []string { return []string{"export", "--format", "otlp", p} }},
		{"export --format events", func(p string) []string { return []string{"export", "--format", "events", p} }},
		{"timeline", func(p string) []string { return []string{"timeline", p} }},
		{"timeline --out", func(p string) []string {
			return []string{"timeline", "--out", filepath.Join(t.TempDir(), "out.html"), p}
		}},
		{"compact", func(p string) []string { return []string{"compact", p, filepath.Join(t.TempDir(), "out.db")} }},
		{"salvage", func(p string) []string { return []string{"salvage", p, filepath.Join(t.TempDir(), "out.db")} }},
	}
	for _, f := range files {
		for _, v := range verbs {
			t.Run(f.name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				args := v.args(f.path)
				check := untouched(t, f.path)
				got := run(args...)
				check()
				code := f.code
				stderr := []string{f.stderr}
				switch {
				case f.name == "empty" && v.name == "why":
					code, stderr = exitFailed, []string{"no events"}
				case f.name == "damaged" && (v.name == "state" || v.name == "unsynced"):
					code, stderr = exitOK, nil // the newest events are good
				case f.name == "damaged" && v.name == "salvage":
					code, stderr = exitOK, []string{"sequences 30 to 30 are lost"}
				case f.name == "foreign bbolt file" && v.name == "salvage":
					stderr = []string{"not a journal"}
				case f.name == "damaged" && v.name == "verify", f.name == "damaged" && v.name == "compact":
					stderr = []string{"problems"}
				case f.stderr == "":
					stderr = nil
				}
				wantRun(t, got, code, stderr...)
			})
		}
	}
}

func TestWrongUsage(t *testing.T) {
	path := build(t, nil)
	for _, args := range [][]string{
		{}, {"events"}, {"--nonsense", path}, {"-o", "xml", path}, {"evens", path}, {"events", path, path},
		{"--kind", "sat", path}, {"--pod", "a/b/c", path}, {"--pod", "/x", path}, {"--since", "yesterday", path}, {"--until", "-", path},
		{"--from", "9", "--to", "3", path}, {"--from", "x", path}, {"--since", "1h", "--until", "2h", path}, {"--follow", path},
		{"--socket", "x", path}, {"state", "--at", "0", path}, {"state", "--at", "soon", path}, {"diff", path, "1"}, {"diff", path, "1", "x"},
		{"why", path}, {"why"}, {"why", path, "a/"}, {"stats", "--top", "-1", path}, {"verify"}, {"compact", path}, {"compact"}, {"salvage", path}, {"state", ""},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), path, "FILE"), func(t *testing.T) {
			got := run(args...)
			wantRun(t, got, exitUsage, "--help")
			if got.out != "" {
				t.Errorf("stdout: got %q, want none", got.out)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"help"}, {"events", "--help"}, {"state", "-h"}, {"why", "--help"}} {
		got := run(args...)
		wantRun(t, got, exitOK)
		if !strings.Contains(got.out, "Examples:") || !strings.Contains(got.out, "journal-dump") {
			t.Errorf("%v: got %s", args, got.out)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := run("completion", shell); got.code != exitOK || !strings.Contains(got.out, "journal-dump") {
			t.Errorf("completion %s: exit code %d", shell, got.code)
		}
	}
	if got := run("__complete", "events", "--kind", ""); !strings.Contains(got.out, "rejected\n") {
		t.Errorf("completion of --kind: got %q", got.out)
	}
}
