// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	long := time.Now().Add(-time.Minute)
	p := &progress{w: &out, began: long, last: long}
	p.at("events", progressEvents+1, 3*progressEvents) // not looked at
	p.at("events", progressEvents, 4*progressEvents)
	p.at("events", 2*progressEvents, 4*progressEvents) // too soon after
	p.clear()
	p.clear()
	if got, want := out.String(), "\r\x1b[Kevents: 4096 of 16384 (25%)\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgress_TerminalOnly: a pipe and a file get nothing.
func TestProgress_TerminalOnly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if p := newProgress(w); p != nil {
		t.Error("progress on a pipe")
	}
	if p := newProgress(&bytes.Buffer{}); p != nil {
		t.Error("progress in a buffer")
	}
	var none *progress
	none.at("events", progressEvents, 0)
	none.step("events", 1, 2)
	none.clear()
}
