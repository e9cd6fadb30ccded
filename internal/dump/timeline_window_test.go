// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
)

// at is a time of the night, written as it is typed.
func at(clock string) string { return "2026-01-31T" + clock }

// windowOf draws a part of a journal as a page; what is said beside it is returned.
func windowOf(t *testing.T, path string, args ...string) (got pageData, stderr string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	ran := run(append([]string{"timeline", "--out", out, path}, args...)...)
	if ran.code != exitOK {
		t.Fatalf("timeline %q: exit code %d, %s", args, ran.code, ran.err)
	}
	page, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return parsePage(t, string(page)), ran.err
}

// shortCode is what a bar shows, for a table of tests.
func shortCode(code uint8) string {
	phase := []string{"absent", "Pending", "Running", "Succeeded", "Failed", "other"}[code/4]
	return phase + []string{"", " False", " True"}[code%4]
}

// bars are what a page draws of each pod: its state at the beginning, the sequences
// of its events, and its state at the end.
func bars(d pageData) map[string]string {
	all := map[string]string{}
	for _, p := range d.Pods {
		last, text := p.Start, shortCode(p.Start)
		for _, e := range p.Events {
			text += fmt.Sprintf(" %v", e[0])
			last = uint8(e[3].(float64))
		}
		all[d.Strings[p.Name]] = text + " " + shortCode(last)
	}
	return all
}

func TestTimeline_Window(t *testing.T) {
	path := night(t)
	clockOf := func(millis int64) string { return time.UnixMilli(millis).UTC().Format("15:04:05") }
	const ready, unready = "Running True", "Running False"
	tests := []struct {
		args     string
		from, to string
		want     map[string]string
	}{
		{"", "02:40:00", "03:05:32", map[string]string{"default/cache-0": "absent 3 5 6 7 8 9 10 " + ready, "default/job-7": "absent 11 15 16 17 absent",
			"default/web-0": "absent 2 4 12 13 " + ready}},
		{"--since 2026-01-31T02:47:30 --until 2026-01-31T02:52", "02:47:30", "02:52:00",
			map[string]string{"default/cache-0": ready + " 9 10 " + ready, "default/job-7": "absent 11 " + ready, "default/web-0": ready + " " + ready}},
		{"--since 2026-01-31T02:44:10 --until 2026-01-31T02:44:20", "02:44:10", "02:44:20", // no event at all
			map[string]string{"default/cache-0": unready + " " + unready, "default/web-0": ready + " " + ready}},
		{"--until 2026-01-31T02:41:10", "02:40:00", "02:41:10", map[string]string{"default/web-0": "absent 2 Pending False"}},
		{"--until 2026-01-31T02:30", "02:30:00", "02:30:00", map[string]string{}},
		{"--since 2026-01-31T02:30 --until 2026-01-31T02:41:10", "02:30:00", "02:41:10", map[string]string{"default/web-0": "absent 2 Pending False"}},
		{"--since 2026-01-31T03:04", "03:04:00", "03:05:32",
			map[string]string{"default/cache-0": ready + " " + ready, "default/job-7": "Failed False 17 absent", "default/web-0": ready + " " + ready}},
		{"--since 2026-01-31T02:59:30 --until 2026-01-31T02:59:30 --pod web-0", "02:59:30", "02:59:30", map[string]string{"default/web-0": ready + " 12 " + unready}},
		{"--since 12 --until 13", "02:59:30", "03:00:21",
			map[string]string{"default/cache-0": ready + " " + ready, "default/job-7": ready + " " + ready, "default/web-0": ready + " 12 13 " + ready}},
		{"--since epoch:2", "03:03:21", "03:05:32",
			map[string]string{"default/cache-0": ready + " " + ready, "default/job-7": ready + " 15 16 17 absent", "default/web-0": ready + " " + ready}},
		{"--until epoch:1 --uid uid-job-7", "02:40:00", "03:00:21", map[string]string{"default/job-7": "absent 11 " + ready}},
		{"--until epoch:2 --since 17", "03:05:32", "03:05:32",
			map[string]string{"default/cache-0": ready + " " + ready, "default/job-7": "Failed False 17 absent", "default/web-0": ready + " " + ready}},
		{"--since 16 --until 99", "03:03:42", "03:05:32",
			map[string]string{"default/cache-0": ready + " " + ready, "default/job-7": "Failed False 16 17 absent", "default/web-0": ready + " " + ready}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got, stderr := windowOf(t, path, strings.Fields(tt.args)...)
			if clockOf(got.From) != tt.from || clockOf(got.To) != tt.to {
				t.Errorf("got %s to %s, want %s to %s", clockOf(got.From), clockOf(got.To), tt.from, tt.to)
			}
			if diff := cmp.Diff(tt.want, bars(got)); diff != "" {
				t.Errorf("bars (-want +got):\n%s", diff)
			}
			if stderr != "" {
				t.Errorf("stderr: got %q, want none", stderr)
			}
		})
	}
}

// TestTimeline_WindowIsState: at its beginning and at its end a timeline shows what
// state --at does there.
func TestTimeline_WindowIsState(t *testing.T) {
	path := night(t)
	state := func(at string) map[string]string {
		var entries []Entry
		if err := json.Unmarshal([]byte(run("state", "-o", "json", "--at", at, path).out), &entries); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, e := range entries {
			c, _ := condition(e.Status, v1.PodReady)
			all[e.Namespace+"/"+e.Name] = fmt.Sprintf("%s %s", e.Status.Phase, c.Status)
		}
		return all
	}
	for from := nightFall.Add(-5 * time.Second); from.Before(nightFall.Add(26 * time.Minute)); from = from.Add(97 * time.Second) {
		since, until := from.Format(time.RFC3339), from.Add(211*time.Second).Format(time.RFC3339)
		got, _ := windowOf(t, path, "--since", since, "--until", until)
		begin, end := map[string]string{}, map[string]string{}
		for _, p := range got.Pods {
			name, last := got.Strings[p.Name], p.Start
			if p.Start != 0 {
				begin[name] = shortCode(p.Start)
			}
			for _, e := range p.Events {
				last = uint8(e[3].(float64))
			}
			if last != 0 {
				end[name] = shortCode(last)
			}
		}
		if diff := cmp.Diff(state(since), begin); diff != "" {
			t.Errorf("at %s (-state +timeline):\n%s", since, diff)
		}
		if diff := cmp.Diff(state(until), end); diff != "" {
			t.Errorf("from %s until %s (-state +timeline):\n%s", since, until, diff)
		}
	}
}

// TestTimeline_WindowTerminal: the terminal draws the same; bars reach from edge to
// edge.
func TestTimeline_WindowTerminal(t *testing.T) {
	path := night(t)
	got := run("timeline", "--since", at("02:47"), "--until", at("02:55"), path)
	wantRun(t, got, exitOK)
	want := `2026-01-31T02:47:00.000Z to 2026-01-31T02:55:00.000Z, 7.6s a column
agent
default/cache-0  ███████████████▒▒▒▒▒███████████████████████████████████████████
default/job-7                               ████████████████████████████████████
default/web-0    ███████████████████████████████████████████████████████████████
`
	var lines []string
	for _, line := range got.lines() {
		if !strings.HasPrefix(line, "█ ready") {
			lines = append(lines, strings.TrimRight(line, " ")+"\n")
		}
	}
	if diff := cmp.Diff(want, strings.Join(lines, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantRun(t, run("timeline", "--since", "16", "--until", at("03:00"), path), exitFailed, "--until, which is 2026-01-31T03:00:00.000Z here, is before --since, which is 2026-01-31T03:03:42.000Z")
	if got := run("timeline", "--until", at("02:30"), path); got.out != "no pods\n" {
		t.Errorf("before all: got %q", got.out)
	}
}

// TestTimeline_BeyondTheEnd: bars go on to --until, and it is said from when on that
// is a guess.
func TestTimeline_BeyondTheEnd(t *testing.T) {
	path := night(t)
	const note = "night.db: the journal ends at 2026-01-31T03:05:32.000Z: after that, pods are drawn as they were then"
	got, stderr := windowOf(t, path, "--since", at("03:05:40"), "--until", at("03:10"))
	if diff := cmp.Diff(map[string]string{"default/cache-0": "Running True Running True", "default/web-0": "Running True Running True"}, bars(got)); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	if want := strings.Replace(note, "night.db", path, 1); !strings.Contains(stderr, want) || got.To != nightFall.Add(30*time.Minute).UnixMilli() {
		t.Errorf("got %q until %d, want %q", stderr, got.To, want)
	}
	// Without --until it is drawn until now.
	before := time.Now().UnixMilli()
	if got, _ := windowOf(t, path, "--since", at("03:05:40")); got.To < before || got.From != nightFall.Add(25*time.Minute+40*time.Second).UnixMilli() {
		t.Errorf("got %d to %d", got.From, got.To)
	}
}

// TestTimeline_RunningAgent: how things are now a running agent's journal says.
func TestTimeline_RunningAgent(t *testing.T) {
	path := night(t)
	socket := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }))
	wantRun(t, run("timeline", "--socket", socket, "--since", at("03:00"), "--until", "now"), exitOK)
	wantRun(t, run("timeline", "--socket", socket, "--since", at("03:00"), "--until", "2100-01-01"), exitOK, "the journal ends at ")
}

// TestTimeline_WindowCuts: what reaches over the edges is cut there: pauses before
// starts of the agent, and what is not acknowledged.
func TestTimeline_WindowCuts(t *testing.T) {
	path := night(t)
	moment := func(clock string) int64 {
		t.Helper()
		m, err := time.Parse("2006-01-02T15:04:05", at(clock))
		if err != nil {
			t.Fatal(err)
		}
		return m.UnixMilli()
	}
	tests := []struct {
		since, until string
		epochs       [][4]int64
		unsynced     int64 // of web-0, since 03:00:21
	}{
		{"02:59:00", "03:04:00", [][4]int64{{2, moment("03:03:21"), moment("03:00:21"), epochUnclean}}, 81_000},
		{"03:02:00", "03:04:00", [][4]int64{{2, moment("03:03:21"), moment("03:02:00"), epochUnclean}}, 0},
		{"02:59:00", "03:02:00", [][4]int64{{2, moment("03:02:00"), moment("03:00:21"), epochUnclean | epochLater}}, 81_000},
		{"03:01:00", "03:02:00", [][4]int64{{2, moment("03:02:00"), moment("03:01:00"), epochUnclean | epochLater}}, 0},
		{"02:59:00", "03:00:00", [][4]int64{}, -1},
		{"03:04:00", "03:05:00", [][4]int64{}, 0},
	}
	for _, tt := range tests {
		got, _ := windowOf(t, path, "--since", at(tt.since), "--until", at(tt.until))
		if diff := cmp.Diff(tt.epochs, got.Epochs); diff != "" {
			t.Errorf("%s to %s: starts of the agent (-want +got):\n%s", tt.since, tt.until, diff)
		}
		for _, p := range got.Pods {
			want := int64(-1)
			if got.Strings[p.Name] == "default/web-0" {
				want = tt.unsynced
			}
			if p.Unsynced != want {
				t.Errorf("%s to %s: %s is not acknowledged since %d, want %d", tt.since, tt.until, got.Strings[p.Name], p.Unsynced, want)
			}
		}
	}
	// A start that is later is no mark in the terminal.
	if got := run("timeline", "--since", at("03:01"), "--until", at("03:02"), path); strings.ContainsAny(got.lines()[2], "!|") {
		t.Errorf("got %q", got.lines()[2])
	}
}

// TestTimeline_Restarts: a restart is drawn where it was seen, not where a pod's
// history begins, nor in its next life.
func TestTimeline_Restarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), journal.FileName)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(nightFall))
		w := openWriter(t, path)
		for _, s := range []*v1.PodStatus{restarted(3, 1, "Error"), restarted(4, 1, "Error"), restarted(4, 1, "Error")} {
			time.Sleep(time.Minute)
			w.set("web-0", s)
		}
		time.Sleep(time.Minute)
		w.add("web-0", journal.KindRemoved, journal.ReasonDeleted, nil)
		time.Sleep(time.Minute)
		w.set("web-0", restarted(5, 1, "Error"))
		w.close()
	})
	marks := func(args ...string) (all []any) {
		got, _ := windowOf(t, path, args...)
		for _, e := range got.Pods[0].Events {
			if int(e[4].(float64))&flagRestart != 0 {
				all = append(all, e[0])
			}
		}
		return all
	}
	if diff := cmp.Diff([]any{3.0}, marks()); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
	if got := marks("--since", "4"); got != nil {
		t.Errorf("a restart before the window is in it: %v", got)
	}
}

// TestTimeline_ClockSetBack: events behind one with an earlier time are drawn.
func TestTimeline_ClockSetBack(t *testing.T) {
	tl := timeline{from: nightFall, to: nightFall.Add(10 * time.Second)}
	pending, ready := laneState{phase: phasePending}, laneState{phase: phaseFailed}
	l := &lane{moments: []moment{{at: nightFall.Add(6 * time.Second), state: pending}, {at: nightFall.Add(3 * time.Second), state: ready}}}
	var got strings.Builder
	for _, c := range tl.cells(l, 10) {
		got.WriteRune(c.char)
	}
	if want := "      ✗✗✗✗"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}
