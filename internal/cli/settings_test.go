// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// runFlagsOf parses a command line of run as the command does, up to the agent.
func runFlagsOf(t *testing.T, args []string, file string, env map[string]string) (*runFlags, *pflag.FlagSet, error) {
	t.Helper()
	r := newRunFlags()
	cmd := &cobra.Command{Use: "run"}
	r.addFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	var values map[string]fileValue
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		if values, err = readConfig(path); err != nil {
			return r, cmd.Flags(), err
		}
	}
	err := fillFlags(cmd.Flags(), values, func(name string) string { return env[name] })
	return r, cmd.Flags(), err
}

func TestSettings_Precedence(t *testing.T) {
	const file = "version: 1\npassInterval: 3s\nqps: 3\nworkers: 3\nmode: record\n"
	env := map[string]string{"STATUSSTORE_PASS_INTERVAL": "2s", "STATUSSTORE_QPS": "2.5"}
	r, _, err := runFlagsOf(t, []string{"--pass-interval", "1s"}, file, env)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.agent.PassInterval, time.Second; got != want {
		t.Errorf("flag, environment and file: got %v, want the flag's %v", got, want)
	}
	if got, want := r.agent.QPS, float32(2.5); got != want {
		t.Errorf("environment and file: got %v, want the environment's %v", got, want)
	}
	if got, want := r.agent.Workers, 3; got != want {
		t.Errorf("file: got %v, want %v", got, want)
	}
	if got, want := r.mode.value, "record"; got != want {
		t.Errorf("file: got %v, want %v", got, want)
	}
	if got, want := r.agent.Burst, 100; got != want {
		t.Errorf("default: got %v, want %v", got, want)
	}
}

// TestSettings_Socket is exported for the other commands and must not move the
// agent's socket; the file may.
func TestSettings_Socket(t *testing.T) {
	env := map[string]string{"STATUSSTORE_SOCKET": "/e"}
	for file, want := range map[string]string{"": "", "version: 1\nsocket: /f\n": "/f"} {
		r, _, err := runFlagsOf(t, nil, file, env)
		if err != nil || r.agent.Socket != want {
			t.Errorf("file %q: got %q, %v, want %q", file, r.agent.Socket, err, want)
		}
	}
}

// TestSettings_Lists are lists in the file, and have commas elsewhere; they replace
// each other and are not added up.
func TestSettings_Lists(t *testing.T) {
	tests := []struct {
		name, file string
		args       []string
		env        map[string]string
		want       []string
	}{
		{"file", "allowUsers: [a, 7]\n", nil, nil, []string{"a", "7"}},
		{"one in the file", "allowUsers: a\n", nil, nil, []string{"a"}},
		{"none in the file", "allowUsers: []\n", nil, nil, []string{}},
		{"environment", "allowUsers: [a]\n", nil, map[string]string{"STATUSSTORE_ALLOW_USERS": "b,c"}, []string{"b", "c"}},
		{"flags", "allowUsers: [a]\n", []string{"--allow-users", "d", "--allow-users", "e,f"}, map[string]string{"STATUSSTORE_ALLOW_USERS": "b"}, []string{"d", "e", "f"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _, err := runFlagsOf(t, tt.args, "version: 1\n"+tt.file, tt.env)
			if err != nil || !slices.Equal(r.agent.AllowUsers, tt.want) {
				t.Errorf("got %q, %v, want %q", r.agent.AllowUsers, err, tt.want)
			}
		})
	}
}

// TestSettings_AsWritten: what YAML takes for a number or a truth value is a name
// where a name is wanted.
func TestSettings_AsWritten(t *testing.T) {
	for _, node := range []string{"n", "on", "no", "0123", "1e3", "0x10", "1_000", "2026-12-02", "1.0", "null-1", `"~"`, "true"} {
		r, _, err := runFlagsOf(t, nil, "version: 1\nnode: "+node+"\nallowUsers: ["+node+"]\n", nil)
		if want := strings.Trim(node, `"`); err != nil || r.agent.Node != want || !slices.Equal(r.agent.AllowUsers, []string{want}) {
			t.Errorf("%s: got node %q, users %q, %v", node, r.agent.Node, r.agent.AllowUsers, err)
		}
	}
	r, _, err := runFlagsOf(t, nil, "version: 1\nnode: &n a\nallowUsers: [*n, 'b']\nallNodes: true\nqps: 2.5\nsocket: |-\n  /s\n", nil)
	if a := r.agent; err != nil || a.Node != "a" || !slices.Equal(a.AllowUsers, []string{"a", "b"}) || !a.AllNodes || a.QPS != 2.5 || a.Socket != "/s" {
		t.Errorf("got %+v, %v", r.agent, err)
	}
}

// TestSettings_FlagAtItsDefault wins too: it was said.
func TestSettings_FlagAtItsDefault(t *testing.T) {
	r, _, err := runFlagsOf(t, []string{"--workers", "10"}, "version: 1\nworkers: 3\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.agent.Workers != 10 {
		t.Errorf("got %d workers, want 10", r.agent.Workers)
	}
}

func TestSettings_Wrong(t *testing.T) {
	tests := []struct {
		name, file string
		env        map[string]string
		want       string
	}{
		{"unknown key", "version: 1\ndataDir: d\nwrokers: 3\n", nil, "unknown key wrokers"},
		{"a flag's spelling", "version: 1\ndata-dir: d\n", nil, "unknown key data-dir"},
		{"key twice", "version: 1\nnode: a\nnode: b\n", nil, `line 3: key "node" is there twice`},
		{"not a number", "version: 1\nworkers: many\n", nil, `workers: "many"`},
		{"not a duration", "version: 1\npassInterval: 10\n", nil, `passInterval: "10"`},
		{"not a choice", "version: 1\nmode: both\n", nil, "manage, record"},
		{"list", "version: 1\nnode: [a]\n", nil, "node: want one plain value"},
		{"nothing", "version: 1\nnode:\n", nil, "node: want one plain value"},
		{"no mapping", "- a\n", nil, "want a mapping"},
		{"no YAML", "a: [", nil, "configuration file "},
		{"two documents", "version: 1\nnode: a\n---\nqps: 3\n", nil, "want one document only"},
		{"a key that is a list", "version: 1\n[a]: b\n", nil, "line 2: a key is no word"},
		{"version twice", "version: 1\nversion: 1\n", nil, `"version" is there twice`},
		{"only a comment", "# nothing\n", nil, "version is missing"},
		{"only a null", "~\n", nil, "version is missing"},
		{"version of another kind", "version: 1.0\n", nil, "version 1.0 is unknown"},
		{"list in a list", "version: 1\nallowUsers: [[a]]\n", nil, "allowUsers: want one plain value, or a list"},
		{"no version", "node: a\n", nil, "version is missing"},
		{"empty", "\n", nil, "version is missing"},
		{"newer version", "version: 2\nnode: a\n", nil, "version 2 is unknown"},
		{"version as text", "version: \"1\"\nnode: a\n", nil, `version "1" is unknown`},
		{"for once only", "version: 1\nmoveDamagedAside: true\n", nil, "unknown key moveDamagedAside"},
		{"file in a file", "version: 1\nconfig: x\n", nil, "unknown key config"},
		{"environment", "", map[string]string{"STATUSSTORE_BURST": "x"}, `STATUSSTORE_BURST="x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := runFlagsOf(t, nil, tt.file, tt.env)
			if _, ok := errors.AsType[*usageError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want a wrong usage with %q", err, tt.want)
			}
		})
	}
}

// TestSettings_PrintedConfig can be used as a file and leads to the same settings.
func TestSettings_PrintedConfig(t *testing.T) {
	args := []string{"--data-dir", "a: b", "--node", "12", "--qps", "-1", "--history-bytes", "9007199254740993", "--mode", "record", "--log-format", "json", "--drain-timeout", "90s", "--allow-users", "a,7", "--read-only-groups", "g"}
	first, flags, err := runFlagsOf(t, args, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := printConfig(&printed, flags); err != nil {
		t.Fatal(err)
	}
	second, flags, err := runFlagsOf(t, nil, printed.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := printConfig(&again, flags); err != nil {
		t.Fatal(err)
	}
	if printed.String() != again.String() {
		t.Errorf("printed again:\n%s\nwant:\n%s", &again, &printed)
	}
	if got := second.agent.AllowUsers; !slices.Equal(got, []string{"a", "7"}) {
		t.Errorf("got allowed users %q", got)
	}
	if first.agent.DataDir != second.agent.DataDir || second.agent.Retention.MaxBytes != 9007199254740993 || second.agent.QPS != -1 {
		t.Errorf("got %+v, want %+v", second.agent, first.agent)
	}
}

func TestReadConfig_Missing(t *testing.T) {
	_, err := readConfig(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}
