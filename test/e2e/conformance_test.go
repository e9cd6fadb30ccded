// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/statusstore/statusstore/internal/conformance"
)

// TestConformance runs the suite that keeps internal/fakeapi honest against the
// server that it imitates.
func TestConformance(t *testing.T) {
	conformance.Run(t, func(*testing.T) conformance.Target {
		return conformance.Target{Config: plane.config, Node: "conformance-node"}
	})
}
