// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the commands print into the documentation and the scripts")

// TestDocs runs the commands that the documentation shows and compares what they
// print with what is shown. -update writes it anew.
func TestDocs(t *testing.T) {
	doc, err := filepath.Abs("../../docs/journal-dump.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	path := night(t)
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), "night.db")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(path))
	block := regexp.MustCompile("(?s)```console\n\\$ (journal-dump [^\n]*)\n(.*?)```")
	if n := len(block.FindAll(text, -1)); n < 10 {
		t.Fatalf("the documentation shows %d commands, want the ten questions' at least", n)
	}
	out := block.ReplaceAllStringFunc(string(text), func(b string) string {
		m := block.FindStringSubmatch(b)
		got := run(strings.Fields(m[1])[1:]...)
		wantRun(t, got, exitOK)
		if diff := cmp.Diff(steady(m[2]), steady(got.out)); diff != "" && !*update {
			t.Errorf("%s (-shown +printed):\n%s", m[1], diff)
		}
		return "```console\n$ " + m[1] + "\n" + steady(got.out) + "```"
	})
	if *update {
		if err := os.WriteFile(doc, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(string(text), "\n### "); n < 10 {
		t.Errorf("%d questions, want 10", n)
	}
}

// unsteady is what differs between machines and releases: the boot, sizes of the
// file, and how long ago something was.
var unsteady = []struct {
	expr *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`bootID=[0-9a-f-]{36}`), "bootID=2e9a6d4e-8f8b-4a57-9a43-0f6a4a3e5d10"},
	{regexp.MustCompile(`bytes +\d+ in the file, (\d+) in records, \d+ free`), "bytes              1077248 in the file, $1 in records, 12288 free"},
	{regexp.MustCompile(`free pages +\d+ of \d+, \d+ bytes each`), "free pages         3 of 263, 4096 bytes each"},
}

func steady(s string) string {
	for _, u := range unsteady {
		s = u.expr.ReplaceAllString(s, u.as)
	}
	return s
}
