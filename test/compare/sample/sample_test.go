// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/statusstore/statusstore/podstatus"
)

// TestStatus: equal arguments give equal statuses, others do not, and each shape is
// larger than the one before.
func TestStatus(t *testing.T) {
	before := 0
	for _, shape := range Shapes {
		t.Run(shape.Name, func(t *testing.T) {
			a, b := shape.Pod("run", "node", 7), shape.Pod("run", "node", 7)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Errorf("the same pod twice:\n%s", diff)
			}
			one, again, other := shape.Status(a, 1), shape.Status(b, 1), shape.Status(a, 2)
			if diff := cmp.Diff(one, again); diff != "" {
				t.Errorf("the same status twice:\n%s", diff)
			}
			if cmp.Equal(one, other) {
				t.Error("a restart changes nothing")
			}
			encoded, err := podstatus.Encode(&one)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) <= before {
				t.Errorf("got %d bytes, want more than %d", len(encoded), before)
			}
			before = len(encoded)
		})
	}
}
