// SPDX-License-Identifier: Apache-2.0

// Command statusstore stores pod statuses durably on a node and sends them to
// the API server. "statusstore help" lists what it does.
package main

import (
	"os"

	"github.com/statusstore/statusstore/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
