// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// trimmed is a journal of three epochs, of whose 600 events retention has left the
// last hundred or so, all of the third epoch, and the openings. Events come a second
// apart. It returns the first event from which on all are kept, and its time.
func trimmed(t *testing.T) (path string, first journal.Sequence, at time.Time) {
	t.Helper()
	var third journal.Sequence
	path = filepath.Join(t.TempDir(), journal.FileName)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(nightFall))
		for range 3 {
			j, err := journal.Open(path, journal.Options{Node: "node-1", Software: "test", Retention: journal.Retention{MaxEvents: 100}})
			if err != nil {
				t.Fatal(err)
			}
			w := &writer{t, j}
			third, _ = j.Head()
			for i := range 199 {
				time.Sleep(time.Second)
				w.set(fmt.Sprintf("web-%d", i%3), restarted(int32(third)+int32(i), 1, "Error"))
			}
			w.close()
		}
	})
	file, err := scan.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for e, err := range (&source{fast: file, path: path}).events(t.Context(), scan.Options{From: file.Head.Horizon + 1}, func(err error) { t.Error(err) }) {
		if err != nil {
			t.Fatal(err)
		}
		first, at = e.Sequence, e.Time
		break
	}
	if file.Head.Horizon < third+1 || first > file.Head.Sequence-50 || file.Head.Sequence != 600 {
		t.Fatalf("trimmed up to %d of %d: too little or too much for this test; the third epoch begins with %d", file.Head.Horizon, file.Head.Sequence, third)
	}
	return path, first, at
}

// TestTrimmedIsSaid: who asks for a range of which retention took events is told once,
// on standard error; who asks for all, or for what is there, is not.
func TestTrimmedIsSaid(t *testing.T) {
	path, first, at := trimmed(t)
	note := fmt.Sprintf("journal-dump: %s: events before sequence %d (%s) were trimmed by retention and are not in the file, but for each pod's newest and starts of the agent\n",
		path, first, clock{time.UTC}.format(at))
	before, after := at.Add(-time.Millisecond).Format(time.RFC3339Nano), at.Format(time.RFC3339Nano)
	tests := []struct {
		args string
		said bool
	}{
		{"", false},
		{"--kind set", false},
		{"--from 0", false},
		{"--from 1", true},
		{fmt.Sprintf("--from %d", first-1), true},
		{fmt.Sprintf("--from %d", first), false},
		{fmt.Sprintf("--from %d --to %d", first, first+5), false},
		{fmt.Sprintf("--to %d", first-1), true},
		{fmt.Sprintf("--to %d", first), false},
		{fmt.Sprintf("--since %d", first-1), true},
		{fmt.Sprintf("--since %d", first), false},
		{fmt.Sprintf("--until %d", first-1), true},
		{"--since " + before, true},
		{"--since " + after, false},
		{"--until " + before, true},
		{"--until " + after, false},
		{"--since epoch:1", true},
		{"--since epoch:2 --until epoch:2", true},
		{"--since epoch:3", true}, // it began before
		{"--until epoch:3", false},
		{"-p --from 1 --pod web-1", true},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			check := untouched(t, path)
			got := run(append(strings.Fields(tt.args), "-o", "ndjson", path)...)
			check()
			want := ""
			if tt.said {
				want = note
			}
			if got.code != exitOK || got.err != want {
				t.Errorf("exit code %d, stderr %q; want 0, %q", got.code, got.err, want)
			}
			got.events(t) // nothing else is on standard output
		})
	}
	for _, args := range [][]string{{"export", "--from", "1", path}, {"why", "--since", "1", path, "web-0"}, {"timeline", "--since", "epoch:1", path}} {
		if got := run(args...); got.code != exitOK || got.err != note {
			t.Errorf("%s: exit code %d, stderr %q; want %q", args[0], got.code, got.err, note)
		}
	}
	openWriter(t, path).close() // of this epoch all is there
	wantRun(t, run("--since", "epoch:4", path), exitOK)
}

// TestNoSuchPlace: a place that is not in the journal is an error of every command
// that takes one, and says what there is.
func TestNoSuchPlace(t *testing.T) {
	path := night(t)
	out := filepath.Join(t.TempDir(), "out.html")
	for _, verb := range []string{"events", "export", "why", "timeline", "timeline --out " + out} {
		for flag, want := range map[string]string{
			"--since epoch:99": "no event of epoch 99 is kept; the journal has epochs 1 to 2",
			"--until epoch:99": "no event of epoch 99 is kept; the journal has epochs 1 to 2",
			"--since 99":       "sequence 99 is above the head 17",
			"--from 99":        "sequence 99 is above the head 17",
		} {
			if flag == "--from 99" && verb != "events" && verb != "export" {
				continue
			}
			args := append(strings.Fields(verb), append(strings.Fields(flag), path)...)
			if verb == "why" {
				args = append(args, "web-0")
			}
			got := run(args...)
			wantRun(t, got, exitFailed, path, want)
			if got.out != "" {
				t.Errorf("%s %s: stdout: got %q, want none", verb, flag, got.out)
			}
		}
	}
	for _, args := range [][]string{{"state", "--at", "epoch:99", path}, {"diff", path, "epoch:99", "now"}, {"diff", path, "1", "epoch:99"}} {
		wantRun(t, run(args...), exitFailed, "no event of epoch 99 is kept; the journal has epochs 1 to 2")
	}
	wantRun(t, run("--since", "epoch:2", build(t, nil)), exitFailed, "the journal has epoch 1 only")
	// An end that is not there yet is no mistake, nor is a time at which nothing was.
	for _, flag := range []string{"--to=99", "--until=99", "--until=2031-01-01", "--since=2025-01-01"} {
		if got := run(flag, path); got.code != exitOK || len(got.lines()) != 17 || got.err != "" {
			t.Errorf("%s: exit code %d, %d lines, %q", flag, got.code, len(got.lines()), got.err)
		}
	}
	if got := run("--since", "2031-01-01", path); got.code != exitOK || got.out+got.err != "" {
		t.Errorf("since later: exit code %d, %q", got.code, got.out+got.err)
	}
}

// TestKeptEpochs: epochs that are gone are no part of what there is.
func TestKeptEpochs(t *testing.T) {
	path := build(t, func(w *writer) { w.set("web-0", running("app")) })
	for range 105 { // the newest hundred openings stay, and those of epochs that have events
		openWriter(t, path).close()
	}
	for _, args := range [][]string{{"--since", "epoch:3", path}, {"--until", "epoch:200", path}, {"state", "--at", "epoch:6", path}} {
		wantRun(t, run(args...), exitFailed, "is kept; the journal has epochs 1, 7 to 106")
	}
	if got := run("--since", "epoch:7", "--until", "epoch:8", path); got.code != exitOK || len(got.lines()) != 2 {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.err)
	}
}

// TestDecimal: numbers are read in base 10, whatever they begin with.
func TestDecimal(t *testing.T) {
	path := night(t)
	for _, args := range []string{"--from 010 --to 010", "--since 010 --until 010", "--from 10 --to 0010"} {
		got := run(append(strings.Fields(args), "-o", "ndjson", path)...)
		if seqs := sequences(got.events(t)); got.code != exitOK || len(seqs) != 1 || seqs[0] != 10 {
			t.Errorf("%s: got events %v, want 10", args, seqs)
		}
	}
	wide := run("stats", "--top", "010", path)
	if want := run("stats", "--top", "10", path); wide.code != exitOK || wide.out != want.out {
		t.Errorf("stats --top 010: got %s, want %s", wide.out, want.out)
	}
	for _, verb := range []string{"events", "export"} {
		for _, flag := range []string{"--from", "--to"} {
			for _, number := range []string{"0x10", "0b1", "0o7", "1_0", "+1", "-1", "1.0", "1e3", "", " 1", "18446744073709551616"} {
				wantRun(t, run(verb, flag+"="+number, path), exitUsage, flag, "want a decimal number from")
			}
		}
		wantRun(t, run(verb, "--to", "0", path), exitUsage, `invalid argument "0" for "--to" flag: want a decimal number from 1`)
	}
	for _, number := range []string{"0x10", "-1", "1_0"} {
		wantRun(t, run("stats", "--top", number, path), exitUsage, "--top", "want a decimal number from 0")
	}
	for _, place := range []string{"0x10", "0", "epoch:0", "epoch:0x1", "epoch:+1", "epoch:"} {
		wantRun(t, run("--since", place, path), exitUsage)
		wantRun(t, run("state", "--at", place, path), exitUsage)
		wantRun(t, run("diff", path, place, "now"), exitUsage)
	}
}
