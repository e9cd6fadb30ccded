// SPDX-License-Identifier: Apache-2.0

// Command journal-dump reads the journal of a statusstore agent: what changed,
// when and in which order. It never creates or changes the journal.
package main

import (
	"os"

	"github.com/statusstore/statusstore/internal/dump"
)

func main() {
	os.Exit(dump.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
