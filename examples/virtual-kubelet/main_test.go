// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// childVar makes the test binary be the program.
const childVar = "TIMETABLE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		main()
	}
	os.Exit(m.Run())
}
