// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// TestUsage wants exit code 2, one line that says what is wrong, one that helps,
// and nothing else.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := []struct{ line, want string }{
		{"", "no command given"},
		{"gte", `unknown command "gte"; did you mean get?`},
		{"frobnicate", `unknown command "frobnicate"`},
		{"help nope", `unknown command "nope"`},
		{"--nope", "unknown flag: --nope"},
		{"get --nope", "unknown flag: --nope"},
		{"get -o xml", "want one of table, wide, json, yaml, name"},
		{"get a b", `want at most one NAME, got "a" "b"`},
		{"get a -A", "leave out -A"},
		{"get a -l app=web", "exclude each other"},
		{"get a/b/c", "want NAME or NAMESPACE/NAME"},
		{"set", "-f FILE is required"},
		{"set -f x y", "no arguments"},
		{"readiness web app", "want POD CONTAINER true|false"},
		{"readiness web app maybe", `want true or false, got "maybe"`},
		{"startup web", "want POD CONTAINER true|false"},
		{"terminate", "want one POD, got none"},
		{"finish a b", "want one POD"},
		{"retain", "at least one UID"},
		{"status x", "no arguments"},
		{"status -o table", "want one of text, json"},
		{"snapshot", "want one FILE"},
		{"proxy --port 70000", "--port"},
		{"proxy x", "no arguments"},
		{"version x", "no arguments"},
		{"completion", "want bash, zsh or fish"},
		{"completion tcsh", "want bash, zsh or fish"},
		{"demo x", "no arguments"},
		{"demo --pods 0", "at least one pod"},
		{"demo --pods 5000", "want 1 to 1000"},
		{"demo --pods many", "--pods"},
		{"run", "--data-dir DIR is required"},
		{"run --data-dir d", "--node NAME is required"},
		{"run --data-dir d --node n x", "no arguments"},
		{"run --data-dir d --node n --mode both", "manage, record"},
		{"run --data-dir d --node n --workers -1", "workers -1 is negative"},
		{"run --data-dir d --node n --history -1", "history -1 is negative"},
		{"run --data-dir d --node n --history-bytes -1", "--history-bytes -1 is negative"},
		{"run --data-dir d --node n --listen 0.0.0.0:0", "not loopback"},
		{"run --data-dir d --node n --listen 127.0.0.1:x", "--listen 127.0.0.1:x"},
		{"run --data-dir d --node n --listen-remote=maybe", `--listen-remote: want true or false, got "maybe"`},
		{"run --data-dir d --node n --workers many", `--workers: want a whole number within bounds, got "many"`},
		{"run --data-dir d --node N!", `--node "N!"`},
		{"run --data-dir d --node n --socket none/at/all/s", "directory of socket"},
		{"run --data-dir d --node n --pass-interval 3", "--pass-interval"},
		{"run --data-dir d --node n --log-level loud", "debug, warn, error"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			code, out, errs := run(t, strings.Fields(tt.line)...)
			if code != exitUsage || out != "" {
				t.Errorf("got exit code %d, stdout %q, want %d and nothing", code, out, exitUsage)
			}
			lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[0], "statusstore: ") || !strings.HasSuffix(lines[1], "--help' for usage.") {
				t.Fatalf("stderr is not as it should be:\n%s", errs)
			}
			if !strings.Contains(lines[0], tt.want) {
				t.Errorf("got %q, want %q", lines[0], tt.want)
			}
		})
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestHelp has examples for each command that does something.
func TestHelp(t *testing.T) {
	for _, cmd := range newRoot(streams{}).Commands() {
		code, out, _ := run(t, cmd.Name(), "--help")
		if code != exitDone || !strings.Contains(out, "Usage:") {
			t.Errorf("%s --help: got %d\n%s", cmd.Name(), code, out)
		}
		if cmd.Name() != "help" && !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help has no examples:\n%s", cmd.Name(), out)
		}
	}
}
