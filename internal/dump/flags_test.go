// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	bolt "go.etcd.io/bbolt"
)

// elsewhere: these take an agent or a terminal, and have tests of their own.
const elsewhere = "TestSocketSnapshot, TestFollow, TestTerminal"

// flagEffects has, for each flag of each command, a command line without it and one
// with it, which print something else.
var flagEffects = map[string]map[string][2]string{
	"events": {
		"pod": {"FILE", "--pod web-0 FILE"}, "uid": {"FILE", "--uid uid-web-0 FILE"}, "kind": {"FILE", "--kind opened FILE"},
		"from": {"FILE", "--from 3 FILE"}, "to": {"FILE", "--to 3 FILE"}, "since": {"FILE", "--since 3 FILE"}, "until": {"FILE", "--until 3 FILE"},
		"patch": {"FILE", "-p FILE"}, "output": {"FILE", "-o json FILE"}, "redact": {"FILE", "--redact FILE"},
		"local": {"FILE", "--local FILE"}, "utc": {"--local FILE", "--local --utc FILE"},
		"follow": {elsewhere}, "socket": {elsewhere}, "no-headers": {elsewhere},
	},
	"state": {
		"pod": {"FILE", "--pod web-0 FILE"}, "uid": {"FILE", "--uid uid-web-0 FILE"}, "at": {"FILE", "--at 3 FILE"},
		"output": {"FILE", "-o json FILE"}, "redact": {"FILE", "--redact FILE"}, "no-headers": {"FILE", "--no-headers FILE"},
		"local": {"FILE", "--local FILE"}, "utc": {"--local FILE", "--local --utc FILE"}, "socket": {elsewhere},
	},
	"diff": {
		"pod": {"FILE 1 now", "--pod web-0 FILE 1 now"}, "uid": {"FILE 1 now", "--uid uid-web-0 FILE 1 now"},
		"output": {"FILE 1 now", "-o json FILE 1 now"}, "redact": {"FILE 1 now", "--redact FILE 1 now"},
		"local": {"FILE 2026-01-31T03:00 now", "--local FILE 2026-01-31T03:00 now"}, "utc": {"--local FILE 1 now", "--local --utc FILE 1 now"},
		"socket": {elsewhere},
	},
	"why": {
		"since": {"FILE web-0", "--since 3 FILE web-0"}, "until": {"FILE web-0", "--until 3 FILE web-0"},
		"output": {"FILE web-0", "-o json FILE web-0"}, "redact": {"FILE web-0", "--redact FILE web-0"}, "no-headers": {"FILE web-0", "--no-headers FILE web-0"},
		"local": {"FILE web-0", "--local FILE web-0"}, "utc": {"--local FILE web-0", "--local --utc FILE web-0"}, "socket": {elsewhere},
	},
	"unsynced": {
		"pod": {"FILE", "--pod cache-0 FILE"}, "uid": {"FILE", "--uid uid-cache-0 FILE"},
		"output": {"FILE", "-o json FILE"}, "redact": {"FILE", "--redact FILE"}, "no-headers": {"FILE", "--no-headers FILE"},
		"local": {"FILE", "--local FILE"}, "utc": {"--local FILE", "--local --utc FILE"}, "socket": {elsewhere},
	},
	"stats": {
		"top": {"FILE", "--top 1 FILE"}, "output": {"FILE", "-o json FILE"}, "redact": {"FILE", "--redact FILE"},
		"local": {"FILE", "--local FILE"}, "utc": {"--local FILE", "--local --utc FILE"}, "socket": {elsewhere},
	},
	"verify": {"output": {"FILE", "-o json FILE"}, "redact": {"ODD", "--redact ODD"}, "socket": {elsewhere}},
	"export": {
		"pod": {"FILE", "--pod web-0 FILE"}, "uid": {"FILE", "--uid uid-web-0 FILE"}, "kind": {"FILE", "--kind opened FILE"},
		"from": {"FILE", "--from 3 FILE"}, "to": {"FILE", "--to 3 FILE"}, "since": {"FILE", "--since 3 FILE"}, "until": {"FILE", "--until 3 FILE"},
		"format": {"FILE", "--format otlp FILE"}, "redact": {"FILE", "--redact FILE"}, "no-headers": {"--format events FILE", "--format events --no-headers FILE"},
		"local": {"--format events FILE", "--format events --local FILE"}, "utc": {"--local FILE", "--local --utc FILE"}, "socket": {elsewhere},
	},
	"timeline": {
		"pod": {"FILE", "--pod web-0 FILE"}, "uid": {"FILE", "--uid uid-web-0 FILE"}, "since": {"FILE", "--since 3 FILE"}, "until": {"FILE", "--until 3 FILE"},
		"out": {"FILE", "--out OUT FILE"}, "redact": {"FILE", "--redact FILE"},
		"local": {"FILE", "--local FILE"}, "utc": {"--local FILE", "--local --utc FILE"}, "socket": {elsewhere},
	},
	"compact": {"output": {"FILE OUT", "-o json FILE OUT"}, "socket": {elsewhere}},
	"salvage": {"output": {"FILE OUT", "-o json FILE OUT"}},
}

// TestEveryFlag_Counts: no command lists a flag that it then ignores.
func TestEveryFlag_Counts(t *testing.T) {
	zone := time.Local
	time.Local = time.FixedZone("there", 2*60*60)
	t.Cleanup(func() { time.Local = zone })
	path := night(t)
	odd := build(t, nil)
	withBolt(t, odd, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("odd")); return err })
	for _, c := range NewCommand(nil, nil, nil).Commands() {
		verb := c.Name()
		if verb == "completion" || verb == "help" {
			continue
		}
		var listed []string
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !f.Hidden {
				listed = append(listed, f.Name)
			}
		})
		slices.Sort(listed)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(flagEffects[verb])), listed); diff != "" {
			t.Errorf("%s: flags (-in the table +in the help):\n%s", verb, diff)
		}
		for _, lines := range flagEffects[verb] {
			if lines[0] == elsewhere {
				continue
			}
			var said [2]outcome
			for i, line := range lines {
				out := filepath.Join(t.TempDir(), "out")
				args := append([]string{verb}, strings.Fields(strings.NewReplacer("FILE", path, "ODD", odd, "OUT", out).Replace(line))...)
				said[i] = run(args...)
				said[i].out = strings.ReplaceAll(said[i].out, out, "OUT")
			}
			if said[0] == said[1] || said[0].code != exitOK {
				t.Errorf("%s: %q and %q print the same, or fail: %+v", verb, lines[0], lines[1], said[0])
			}
		}
	}
}

// TestNoSuchFlag: what a command can't do it refuses, rather than do something else.
func TestNoSuchFlag(t *testing.T) {
	path := night(t)
	for _, line := range []string{
		"compact --redact FILE OUT", "compact --local FILE OUT", "compact --no-headers FILE OUT", "compact --pod web-0 FILE OUT", "salvage --redact FILE OUT",
		"verify --local FILE", "verify --no-headers FILE", "verify --pod web-0 FILE", "stats --no-headers FILE", "stats --pod web-0 FILE", "diff --no-headers FILE 1 2",
		"diff --since 1 FILE 1 2", "state --since 1 FILE", "timeline --from 1 FILE", "timeline -o json FILE", "why --from 1 FILE web-0", "export -o json FILE",
	} {
		out := filepath.Join(t.TempDir(), "out")
		got := run(strings.Fields(strings.NewReplacer("FILE", path, "OUT", out).Replace(line))...)
		wantRun(t, got, exitUsage, "unknown")
		if left, _ := filepath.Glob(out); got.out != "" || len(left) != 0 {
			t.Errorf("%s: printed %q, left %v", line, got.out, left)
		}
	}
}
