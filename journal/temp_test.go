// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLeftoversOfCopies: what a killed copy left goes with the next copy to that
// name. What is in use, or not ours, stays.
func TestLeftoversOfCopies(t *testing.T) {
	source := filled(t, 20)
	tests := []struct {
		suffix string
		run    func(t *testing.T, dst string) error
	}{
		{snapshotSuffix, func(t *testing.T, dst string) error {
			j := open(t, source, Options{})
			defer j.Close()
			return j.Snapshot(t.Context(), dst)
		}},
		{compactingSuffix, func(t *testing.T, dst string) error { _, err := Compact(t.Context(), source, dst); return err }},
		{salvagingSuffix, func(t *testing.T, dst string) error { _, err := Salvage(t.Context(), source, dst); return err }},
	}
	for _, tt := range tests {
		t.Run(tt.suffix, func(t *testing.T) {
			dir := t.TempDir()
			dst := filepath.Join(dir, "copy.db")
			inUse, err := createTemp(dst, tt.suffix)
			if err != nil {
				t.Fatal(err)
			}
			defer inUse.Close()
			stay := []string{filepath.Base(inUse.Name()), ".copy.db" + tt.suffix + "notes", ".copy.db" + tt.suffix, ".other.db" + tt.suffix + "1", "copy.db" + tt.suffix + "1"}
			for _, name := range append(stay[1:], ".copy.db"+tt.suffix+"123") {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, ".copy.db"+tt.suffix+"777"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.run(t, dst); err != nil {
				t.Fatal(err)
			}
			want := append(stay, ".copy.db"+tt.suffix+"777", "copy.db")
			slices.Sort(want)
			if got := names(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("there are\n%q, want\n%q", got, want)
			}
		})
	}
}
