// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/statusstore/statusstore/journal"
)

// tale is a small history: 1 opened, 2-4 and 7 of web-0, 5 of web-1, 6 its
// removal, 8 a refusal, 9 the agent's next start, 10 web-0 finished.
func tale(t *testing.T) string {
	t.Helper()
	path := build(t, func(w *writer) {
		w.set("web-0", unreadyStatus("app"))
		w.add("web-0", journal.KindSet, journal.ReasonReadiness, running("app"))
		w.set("web-0", restarted(1, 137, "OOMKilled"))
		w.set("web-1", running("app", "side"))
		w.add("web-1", journal.KindRemoved, journal.ReasonOrphaned, nil)
		w.set("web-0", failed(1))
		w.refuse("web-0", v1.RestartPolicyOnFailure, failed(1), running("app"))
		w.ack("web-0", 3)
	})
	w := openWriter(t, path)
	w.add("web-0", journal.KindFinished, "", failed(1))
	w.close()
	return path
}

func TestEventsFilters(t *testing.T) {
	path := tale(t)
	tests := []struct {
		args string
		want []journal.Sequence
	}{
		{"", []journal.Sequence{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"--pod default/web-0", []journal.Sequence{2, 3, 4, 7, 8, 10}},
		{"--pod web-1", []journal.Sequence{5, 6}},
		{"--pod other/web-1", nil},
		{"--uid uid-web-1", []journal.Sequence{5, 6}},
		{"--kind opened", []journal.Sequence{1, 9}},
		{"--kind removed,rejected", []journal.Sequence{6, 8}},
		{"--kind removed --kind finished", []journal.Sequence{6, 10}},
		{"--from 4 --to 6", []journal.Sequence{4, 5, 6}},
		{"--from 9", []journal.Sequence{9, 10}},
		{"--to 2", []journal.Sequence{1, 2}},
		{"--since 2h", []journal.Sequence{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"--until 2h", nil},
		{"--since -2h", []journal.Sequence{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, // as journalctl has it: a sign changes nothing
		{"--until=-2h", nil},
		{"--since 2001-01-01T00:00:00Z --until 2002-01-01", nil},
		{"--pod web-0 --from 4 --kind set -p", []journal.Sequence{4, 7}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			args := append(strings.Fields(tt.args), "-o", "ndjson", path)
			got := run(args...)
			wantRun(t, got, exitOK)
			if diff := cmp.Diff(tt.want, sequences(got.events(t))); diff != "" {
				t.Errorf("sequences (-want +got):\n%s", diff)
			}
			named := run(append([]string{"events"}, args...)...)
			if named.out != got.out {
				t.Errorf("the events verb prints something else than the default")
			}
		})
	}
}

func TestEventsFormats(t *testing.T) {
	path := tale(t)
	want := run("-o", "ndjson", path).events(t)
	var fromJSON, fromYAML []Event
	if err := json.Unmarshal([]byte(run("-o", "json", path).out), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(run("-o", "yaml", path).out), &fromYAML); err != nil {
		t.Fatal(err)
	}
	plain := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".stored" }, cmp.Ignore())
	for name, got := range map[string][]Event{"json": fromJSON, "yaml": fromYAML} {
		if diff := cmp.Diff(want, got, plain); diff != "" {
			t.Errorf("%s (-ndjson +%s):\n%s", name, name, diff)
		}
	}
	if got := run("-o", "json", "--kind", "set", "--pod", "none", path).out; got != "[]\n" {
		t.Errorf("no events in JSON: got %q", got)
	}
	table := run(path)
	wantRun(t, table, exitOK)
	if n := len(table.lines()); n != len(want) {
		t.Errorf("table: got %d lines for %d events", n, len(want))
	}
	for _, s := range []string{"default/web-0", "ended with exit code 1 (Error)", "Evicted", "from=Failed; message=a stored terminal phase is final for this UID; to=Running", "clean=true"} {
		if !strings.Contains(table.out, s) {
			t.Errorf("table lacks %q:\n%s", s, table.out)
		}
	}
}

// TestEventJSON fixes names and order of the fields that other programs read.
func TestEventJSON(t *testing.T) {
	path := tale(t)
	lines := run("-o", "ndjson", path).lines()
	order := regexp.MustCompile(`^\{"sequence":2,"time":"[^"]+Z","epoch":1,"kind":"set","reason":"set","namespace":"default","name":"web-0","uid":"uid-web-0","version":1,"status":\{.*"phase":"Running".*\},"incarnation":1\}$`)
	if !order.MatchString(lines[1]) {
		t.Errorf("set event: got %s", lines[1])
	}
	if strings.Contains(lines[5], `"status"`) || !strings.Contains(lines[5], `"kind":"removed","reason":"orphaned"`) {
		t.Errorf("removed event: got %s", lines[5])
	}
	if !strings.Contains(lines[9], `"kind":"finished"`) || !strings.Contains(lines[9], `"finished":true`) {
		t.Errorf("finished event: got %s", lines[9])
	}
	if !strings.Contains(lines[8], `"attributes":{`) || !strings.Contains(lines[8], `"clean":"true"`) {
		t.Errorf("opened event: got %s", lines[8])
	}
}

func TestPatch(t *testing.T) {
	path := tale(t)
	got := run("-p", "--pod", "web-0", path)
	wantRun(t, got, exitOK)
	for _, s := range []string{
		"conditions[Ready].status: False → True\n",
		"containerStatuses[app].ready: false → true\n",
		"containerStatuses[app].restartCount: 0 → 1\n",
		"containerStatuses[app].lastState.terminated.reason: (none) → OOMKilled\n",
		"phase: Running → Failed\n",
		"(readiness)  default/web-0 version 2\n",
	} {
		if !strings.Contains(got.out, s) {
			t.Errorf("lacks %q:\n%s", s, got.out)
		}
	}
	for _, line := range got.lines() {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("line of %d columns: %s", n, line)
		}
	}
	one := run("-p", "-o", "ndjson", "--from", "3", "--to", "3", path).events(t)
	want := []string{"conditions[Ready].message", "conditions[Ready].reason", "conditions[Ready].status", "containerStatuses[app].ready"}
	var paths []string
	for _, c := range one[0].Changes {
		paths = append(paths, c.Path)
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("changes of event 3 (-want +got):\n%s", diff)
	}
}

func TestState(t *testing.T) {
	path := tale(t)
	parse := func(args ...string) map[string]string {
		t.Helper()
		got := run(append([]string{"state", "-o", "json"}, args...)...)
		wantRun(t, got, exitOK)
		var entries []Entry
		if err := json.Unmarshal([]byte(got.out), &entries); err != nil {
			t.Fatalf("%v in %s", err, got.out)
		}
		out := map[string]string{}
		for _, e := range entries {
			out[e.Namespace+"/"+e.Name] = fmt.Sprintf("%d %s %s %s", e.Version, known(e.AckedVersion), e.Status.Phase, e.UID)
		}
		return out
	}
	tests := []struct {
		name string
		args []string
		want map[string]string
	}{
		{"now", []string{path}, map[string]string{"default/web-0": "5 3 Failed uid-web-0"}},
		{"with both", []string{"--at", "5", path}, map[string]string{"default/web-0": "3 ? Running uid-web-0", "default/web-1": "1 ? Running uid-web-1"}},
		{"after the removal", []string{"--at", "6", path}, map[string]string{"default/web-0": "3 ? Running uid-web-0"}},
		{"at the end", []string{"--at", "10", path}, map[string]string{"default/web-0": "5 3 Failed uid-web-0"}},
		{"before all", []string{"--at", "2h", path}, map[string]string{}},
		{"time", []string{"--at", "now", path}, map[string]string{"default/web-0": "5 3 Failed uid-web-0"}},
		{"other pod", []string{"--pod", "web-9", path}, map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, parse(tt.args...)); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
	fields := regexp.MustCompile(`^\[\{"namespace":"default","name":"web-0","uid":"uid-web-0","version":5,"ackedVersion":3,"status":\{`)
	if got := run("state", "-o", "json", path).out; !fields.MatchString(got) {
		t.Errorf("fields: got %.200s", got)
	}
	wantRun(t, run("state", "--at", "11", path), exitFailed, "above the head 10")
}

func TestUnsynced(t *testing.T) {
	path := tale(t)
	got := run("unsynced", "-o", "ndjson", path)
	wantRun(t, got, exitOK)
	var e unsyncedEntry
	if err := json.Unmarshal([]byte(got.out), &e); err != nil {
		t.Fatalf("%v in %q", err, got.out)
	}
	first := run("-o", "ndjson", "--from", "7", "--to", "7", path).events(t)[0] // version 4
	if e.Name != "web-0" || e.Version != 5 || *e.AckedVersion != 3 || !strings.Contains(e.Why, "2 behind") || !e.PendingSince.Equal(first.Time) {
		t.Errorf("got %s, want web-0 pending since %v", got.out, first.Time)
	}
	w := openWriter(t, path)
	w.ack("web-0", 5)
	w.add("seen", journal.KindSet, journal.ReasonObserved, running("app"))
	w.close()
	if got := run("unsynced", "-o", "json", path); got.out != "[]\n" || got.code != exitOK {
		t.Errorf("all acked: got %q, exit %d", got.out, got.code)
	}
}

func TestDiff(t *testing.T) {
	path := tale(t)
	got := run("diff", path, "5", "10")
	wantRun(t, got, exitOK)
	for _, s := range []string{
		"default/web-0  changed  version 3 → 5  (uid-web-0)\n", "    phase: Running → Failed\n", "    (finished): false → true\n",
		"default/web-1  removed  version 1  (uid-web-1)\n",
	} {
		if !strings.Contains(got.out, s) {
			t.Errorf("lacks %q:\n%s", s, got.out)
		}
	}
	var back []podDiff
	if err := json.Unmarshal([]byte(run("diff", "-o", "json", path, "10", "5").out), &back); err != nil {
		t.Fatal(err)
	}
	if len(back) != 2 || back[0].What != "changed" || back[1].What != "added" || len(back[1].Changes) == 0 {
		t.Errorf("backwards: got %+v", back)
	}
	if got := run("diff", path, "4", "4"); got.out != "" || got.code != exitOK {
		t.Errorf("equal points: got %q, exit %d", got.out, got.code)
	}
}

func TestWhy(t *testing.T) {
	path := tale(t)
	got := run("why", path, "default/web-0")
	wantRun(t, got, exitOK)
	at := 0
	for _, s := range []string{
		"was first seen (uid uid-web-0)", "phase is Running", "is not Ready: ContainersNotReady: containers with unready status: [app]",
		"became Ready after ", "container app restarted (restart 1); the run before ended with exit code 137 (OOMKilled)",
		"phase went from Running to Failed (Evicted)", "container app ended with exit code 1 (Error)", "stopped being Ready after ",
		"an update was refused: from=Failed; message=a stored terminal phase is final for this UID; to=Running", "the agent started (epoch 2) after an orderly stop",
		"is finished: its resources are reclaimed", "at the end of the journal: Failed, version 5, Ready False; the API server acknowledged version 3 at ",
		" after it was accepted",
	} {
		i := strings.Index(got.out[at:], s)
		if i < 0 {
			t.Fatalf("lacks %q after %q:\n%s", s, got.out[:at], got.out)
		}
		at += i + len(s)
	}
	if strings.Contains(got.out, "web-1") {
		t.Errorf("tells of another pod:\n%s", got.out)
	}
	wantRun(t, run("why", path, "web-9"), exitFailed, "no events of pod default/web-9")
}

func TestStats(t *testing.T) {
	path := tale(t)
	var got statsReport
	if err := json.Unmarshal([]byte(run("stats", "-o", "json", path).out), &got); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]uint64{"opened": 2, "set": 5, "removed": 1, "rejected": 1, "finished": 1}
	if diff := cmp.Diff(kinds, got.ByKind); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got.Counted != 10 || got.Events != 10 || got.Head != 10 || got.Epoch != 2 || got.Opened != 2 || got.UncleanOpened != 0 ||
		got.Acks != 1 || got.Unsynced != 1 || got.Stats.Pods != 1 || got.Tombstones != 1 || got.Node != "node-1" {
		t.Errorf("got %+v", got)
	}
	if len(got.Busiest) != 2 || got.Busiest[0].Name != "web-0" || got.Busiest[0].Events != 6 {
		t.Errorf("busiest: got %+v", got.Busiest)
	}
	wantRun(t, run("stats", path), exitOK)
}

func TestExport(t *testing.T) {
	path := tale(t)
	if got, want := run("export", path).out, run("-o", "ndjson", path).out; got != want {
		t.Errorf("export differs from events -o ndjson:\n%s\n%s", got, want)
	}
}

func TestCompact(t *testing.T) {
	path := tale(t)
	check := untouched(t, path)
	dst := filepath.Join(t.TempDir(), "smaller.db")
	wantRun(t, run("compact", path, dst), exitOK)
	check()
	info, err := os.Stat(dst)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("copy: got %v, %v; want mode 0600", info, err)
	}
	if got, want := run("-o", "ndjson", dst).out, run("-o", "ndjson", path).out; got != want {
		t.Error("the copy has other events")
	}
	before := fingerprint(t, dst)
	wantRun(t, run("compact", path, dst), exitFailed, "already exists", dst)
	if after := fingerprint(t, dst); after != before {
		t.Error("an existing file was changed")
	}

	flipped := build(t, func(w *writer) { w.many(50, 5) })
	flip(t, flipped, 20)
	bad := filepath.Join(t.TempDir(), "bad.db")
	wantRun(t, run("compact", flipped, bad), exitFailed, "problems")
	if entries, _ := os.ReadDir(filepath.Dir(bad)); len(entries) != 0 {
		t.Errorf("a damaged journal left %v", entries)
	}
}

func TestSalvage(t *testing.T) {
	path := build(t, func(w *writer) { w.many(50, 5) })
	flip(t, path, 20)
	withBolt(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("head")) })
	check := untouched(t, path)
	wantRun(t, run(path), exitFailed, "head")
	dst := filepath.Join(t.TempDir(), "salvaged.db")
	wantRun(t, run("salvage", filepath.Dir(path), dst), exitOK, "sequences 20 to 20 are lost")
	check()
	wantRun(t, run("verify", dst), exitOK)
	if n := len(run("-o", "ndjson", "--kind", "set", dst).events(t)); n != 48 {
		t.Errorf("set events: got %d, want 48", n)
	}
	wantRun(t, run("salvage", path, dst), exitFailed, "already exists")
	wantRun(t, run("salvage", filepath.Join(t.TempDir(), "none"), dst+"2"), exitFailed, "no such file")
	if info, err := os.Stat(dst); err != nil || info.Mode() != 0o600 {
		t.Errorf("salvaged: got %v, %v; want mode 0600", info, err)
	}
}

func TestDirectoryAndStandardInput(t *testing.T) {
	path := tale(t)
	want := run("-o", "ndjson", path)
	if got := run("-o", "ndjson", filepath.Dir(path)); got.out != want.out || got.code != exitOK {
		t.Errorf("data directory: exit code %d, %s", got.code, got.err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	if got := runWith(string(content), "-o", "ndjson", "-"); got.out != want.out || got.code != exitOK {
		t.Errorf("standard input: exit code %d, %s", got.code, got.err)
	}
	wantRun(t, runWith("", "-"), exitFailed, "standard input", "journal is empty")
	wantRun(t, runWith(string(content[:8192]), "-"), exitFailed, "standard input", "truncated")
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFullDisk(t *testing.T) {
	path := tale(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	var stderr strings.Builder
	if code := Main([]string{path}, nil, full, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "no space") {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain ünïcode ✓", "plain ünïcode ✓"}, {"a\x1b[2Jb", `a\x1b[2Jb`}, {"\r\n\t\x00\x7f", `\r\n\t\x00\x7f`},
		{"\xff\xfe", `\xff\xfe`}, {"\u202e\u009b", `\u202e\u009b`}, {"\ufffd", "\ufffd"},
	}
	for _, tt := range tests {
		if got := escape(tt.in); got != tt.want {
			t.Errorf("escape(%q): got %q, want %q", tt.in, got, tt.want)
		}
	}
}
