// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"testing"
)

// TestKeepNight writes the journal of the examples to a file that is named by an environment variable:
// a journal to try things on by hand.
func TestKeepNight(t *testing.T) {
	dst := os.Getenv("KEEP_NIGHT")
	if dst == "" {
		t.Skip("KEEP_NIGHT names no file")
	}
	b, err := os.ReadFile(night(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dst, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
