// SPDX-License-Identifier: Apache-2.0

package inmemory

import (
	"testing"
	"time"

	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/sample"
)

// TestAll measures everything, briefly. That statuses change, or do not, is checked
// by the calls themselves.
func TestAll(t *testing.T) {
	r := report.New(nil)
	o := Options{Dir: t.TempDir(), Rounds: 1, Slice: 10 * time.Millisecond, Pods: 10, Heap: 50}
	for _, measure := range []func(*report.Report, Options) error{Calls, Reads, Memory} {
		if err := measure(r, o); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Sections) != 3 {
		t.Fatalf("got %d tables, want 3", len(r.Sections))
	}
	calls := r.Sections[0]
	if len(calls.Rows) != 2*len(sample.Shapes) {
		t.Errorf("got %d rows, want unchanged and changed of each shape", len(calls.Rows))
	}
	for _, row := range calls.Rows {
		for i, v := range row.Values[:2] { // of the stock manager
			if !(v > 0) {
				t.Errorf("%s, %s: got %v, want more than 0", row.Name, calls.Columns[i], v)
			}
		}
	}
	if want := 4*len(sample.Shapes) + 1; len(r.Targets) != want {
		t.Errorf("got %d targets, want %d", len(r.Targets), want)
	}
}
