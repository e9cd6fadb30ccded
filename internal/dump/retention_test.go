// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statusstore/statusstore/journal"
)

// C52: the range that retention took is shown, is no damage, and what replaces it
// is complete.
func TestC52_RangeGone(t *testing.T) {
	const pods, position, rounds = 20, 10, 50
	path := filepath.Join(t.TempDir(), journal.FileName)
	j, err := journal.Open(path, journal.Options{Node: "node-1", Software: "test", Retention: journal.Retention{MaxEvents: 100}})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{t, j}
	defer w.Close()
	name := func(i int) string { return fmt.Sprintf("web-%d", i) }
	for i := range position - 1 { // sequences 2 to 10: what the server has
		w.set(name(i), running("app"))
		w.ack(name(i), 1)
	}
	last := make(map[string]string)
	for round := range rounds { // 1,000 more
		for i := range pods {
			s := running("app")
			s.Message = fmt.Sprintf("%d of %s", round, name(i))
			w.set(name(i), s)
			last[name(i)] = s.Message
		}
	}
	w.close()
	const head = position + pods*rounds

	check := untouched(t, path)
	got := run("-o", "ndjson", path)
	wantRun(t, got, exitOK)
	events := got.events(t)
	kept := sequences(events)
	var report statsReport
	stats := run("stats", "-o", "json", path)
	wantRun(t, stats, exitOK)
	if err := json.Unmarshal([]byte(stats.out), &report); err != nil {
		t.Fatal(err)
	}
	first := kept[slices.IndexFunc(events, func(e Event) bool { return e.Kind != "opened" })] // openings have a limit of their own
	if report.Head != head || report.Horizon <= position || report.Horizon != first-1 || report.First != first {
		t.Fatalf("got head %d, from %d, trimmed up to %d; the first event is %d", report.Head, report.First, report.Horizon, first)
	}
	for seq := report.Horizon + 1; seq <= head; seq++ {
		if !slices.Contains(kept, seq) {
			t.Errorf("event %d is gone, only those up to %d are said to be", seq, report.Horizon)
		}
	}
	text := run("stats", path)
	wantRun(t, text, exitOK)
	for _, want := range []string{fmt.Sprintf("%d, from sequence %d\n", len(kept), first), fmt.Sprintf("trimmed up to sequence %d;", report.Horizon)} {
		if !strings.Contains(text.out, want) {
			t.Errorf("stats lacks %q: %s", want, text.out)
		}
	}
	sound := run("verify", path)
	wantRun(t, sound, exitOK)
	if want := fmt.Sprintf("ok: %d events", len(kept)); !strings.Contains(sound.out, want) {
		t.Errorf("verify: got %q, want %q", sound.out, want)
	}
	wantRun(t, run("state", "--at", fmt.Sprint(position), path), exitOK, fmt.Sprintf("history up to sequence %d was trimmed", report.Horizon))

	for _, verb := range []string{"state", "unsynced"} { // all of them wait for the server
		got := run(verb, "-o", "ndjson", path)
		wantRun(t, got, exitOK)
		if n := len(got.lines()); n != pods {
			t.Errorf("%s: got %d pods, want %d", verb, n, pods)
		}
		for _, line := range got.lines() {
			var e Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Status == nil || e.Status.Message != last[e.Name] {
				t.Errorf("%s: %s is not at its last status %q: %s", verb, e.Name, last[e.Name], line)
			}
		}
	}
	check()
}
