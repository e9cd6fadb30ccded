// SPDX-License-Identifier: Apache-2.0

// Command kubectl is kubectl of the control plane's release, for the tests that
// read from an agent as people do.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	// Its errors are printed and end the process.
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}
