// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

import "github.com/rogpeppe/go-internal/testscript"

func terminal(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there is no terminal here")
}
