// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []string{
		"version 1 is on disk\nweb-0 is Running: stored\n",
		"version 1 is on disk\nweb-0 is Running: stored\n", // again: nothing changed
	} {
		var out strings.Builder
		if err := run(t.Context(), dir, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("run %d: got %q, want %q", i+1, got, want)
		}
	}
	if err := run(t.Context(), dir+"/missing", new(strings.Builder)); err == nil {
		t.Error("a directory that is missing: got no error")
	}
}
