// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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
	var values map[string]string
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
	const file = "passInterval: 3s\nqps: 3\nworkers: 3\nmode: record\n"
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
	for file, want := range map[string]string{"": "", "socket: /f\n": "/f"} {
		r, _, err := runFlagsOf(t, nil, file, env)
		if err != nil || r.agent.Socket != want {
			t.Errorf("file %q: got %q, %v, want %q", file, r.agent.Socket, err, want)
		}
	}
}

// TestSettings_FlagAtItsDefault wins too: it was said.
func TestSettings_FlagAtItsDefault(t *testing.T) {
	r, _, err := runFlagsOf(t, []string{"--workers", "10"}, "workers: 3\n", nil)
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
		{"unknown key", "dataDir: d\nwrokers: 3\n", nil, "unknown key wrokers"},
		{"a flag's spelling", "data-dir: d\n", nil, "unknown key data-dir"},
		{"key twice", "node: a\nnode: b\n", nil, `"node" already set`},
		{"not a number", "workers: many\n", nil, `workers: "many"`},
		{"not a duration", "passInterval: 10\n", nil, `passInterval: "10"`},
		{"not a choice", "mode: both\n", nil, "manage, record"},
		{"list", "node: [a]\n", nil, "node: want one plain value"},
		{"nothing", "node:\n", nil, "node: want one plain value"},
		{"no mapping", "- a\n", nil, "want a mapping"},
		{"no YAML", "a: [", nil, "configuration file "},
		{"for once only", "moveDamagedAside: true\n", nil, "unknown key moveDamagedAside"},
		{"file in a file", "config: x\n", nil, "unknown key config"},
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
	args := []string{"--data-dir", "a: b", "--node", "12", "--qps", "-1", "--history-bytes", "9007199254740993", "--mode", "record", "--log-format", "json", "--drain-timeout", "90s"}
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
