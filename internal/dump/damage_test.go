// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusstore/statusstore/journal"
)

// TestDamageAnywhere damages one page after the other, and single bits, and runs
// the verbs: each ends in order and in time, and prints nothing that is not so.
func TestDamageAnywhere(t *testing.T) {
	healthy := build(t, func(w *writer) {
		w.many(300, 30)
		for i := range 30 {
			w.ack("web-"+string(rune('0'+i%10)), 3)
		}
	})
	content, err := os.ReadFile(healthy)
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]bool{}
	for _, line := range run("-o", "ndjson", healthy).lines() {
		truth[line] = true
	}
	if len(truth) != 300 {
		t.Fatalf("the healthy journal has %d events", len(truth))
	}
	size := int(binary.LittleEndian.Uint32(content[24:]))
	used := highWater(content)
	dice := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), journal.FileName)
	try := func(name string, damage func(b []byte)) {
		b := append([]byte(nil), content...)
		damage(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"events", "state", "stats", "verify"} {
			began := time.Now()
			got := run(verb, "-o", "ndjson", path)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%s: %s took %v: %s", name, verb, took, got.err)
			}
			if got.code != exitOK && got.code != exitFailed || got.code == exitFailed && got.err == "" {
				t.Errorf("%s: %s: exit code %d, stderr %q", name, verb, got.code, got.err)
			}
			if verb != "events" {
				continue
			}
			for _, line := range got.lines() {
				if !truth[line] {
					t.Errorf("%s: printed what was never stored: %.200q", name, line)
				}
			}
			if n := len(got.lines()); n < len(truth) && got.code == exitOK {
				t.Errorf("%s: exit code 0 with %d of %d events", name, n, len(truth))
			}
		}
	}
	for page := range used {
		at := page * size
		try("zeroed page", func(b []byte) { clear(b[at : at+size]) })
		try("random page", func(b []byte) {
			for i := range size {
				b[at+i] = byte(dice.Uint32())
			}
		})
		try("page header", func(b []byte) { b[at+8+dice.IntN(8)] ^= 1 << dice.IntN(8) })
		try("page elements", func(b []byte) { b[at+16+dice.IntN(64)] ^= 1 << dice.IntN(8) })
	}
	for range 150 {
		try("flipped bit", func(b []byte) { b[dice.IntN(used*size)] ^= 1 << dice.IntN(8) })
	}
}

// highWater is the number of pages in use.
func highWater(b []byte) int {
	size := int(binary.LittleEndian.Uint32(b[24:]))
	return int(max(binary.LittleEndian.Uint64(b[56:]), binary.LittleEndian.Uint64(b[size+56:])))
}

func TestDamageNamed(t *testing.T) {
	path := build(t, func(w *writer) { w.many(60, 6) })
	flip(t, path, 58) // the newest of its pod
	got := run("state", path)
	wantRun(t, got, exitFailed, "sequence 58", "pod is left out")
	if n := len(got.lines()); n != 6 { // a header, five pods
		t.Errorf("got %d lines, want 6:\n%s", n, got.out)
	}
	if strings.Contains(got.out, "default/web-4 ") {
		t.Errorf("the damaged pod is shown:\n%s", got.out)
	}
	wantRun(t, run("stats", path), exitFailed, "sequence 58")
	wantRun(t, run("unsynced", path), exitFailed, "sequence 58")
	wantRun(t, run("why", path, "web-1"), exitFailed, "sequence 58")
	wantRun(t, run("diff", path, "10", "40"), exitOK) // the range is good
}
