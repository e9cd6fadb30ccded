// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun_Usage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"paper"}, {"journal", "more"}, {"journal", "--no-such-flag"}, {"journal", "--writers", "0"}, {"server", "--pods", "many"},
	} {
		var stderr strings.Builder
		if err := run(t.Context(), args, &strings.Builder{}, &stderr); !errors.Is(err, errUsage) {
			t.Errorf("%q: got %v, want wrong usage", args, err)
		}
	}
}

// TestRun_Journal is the whole way from the command line to both outputs.
func TestRun_Journal(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "result.json")
	var stdout, stderr strings.Builder
	args := []string{"journal", "--dir", dir, "--rounds", "1", "--slice", "10ms", "--writers", "1", "--engines", "statusstore", "--fill", "10", "--out", out}
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stdout.String(), "durable appends, 1 writers") {
		t.Errorf("no table in:\n%s", stdout.String())
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Command string
		Targets []struct{ Name string }
	}
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(result.Command, "compare journal") || len(result.Targets) != 1 {
		t.Errorf("got %+v, want the command and one target", result)
	}
	left, err := filepath.Glob(filepath.Join(dir, "compare-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}
