// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/internal/demo"
)

func newDemo(s streams) *cobra.Command {
	o := demo.Options{Progress: s.err}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See the agent survive a crash and an outage; no cluster needed",
		Long: `Run the agent against an API server in this process, with pods whose statuses
change; cut the network, kill the agent while it is written to, start it again
and restore the network. Then compare what was accepted with what is in the
journal and on the API server. It ends with exit code 1 if anything was lost or
sent in vain. Only loopback addresses are used, and nothing is left behind.`,
		Example: `  statusstore demo
  statusstore demo --pods 200`,
		Args: wantArgs(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Pods < 1 {
				return usagef("demo: want at least one pod, got %d", o.Pods)
			}
			report, err := demo.Run(cmd.Context(), o)
			if errors.Is(err, demo.ErrOptions) {
				return &usageError{err}
			}
			if err != nil {
				return err
			}
			if err := report.Print(s.out); err != nil {
				return err
			}
			return report.Err()
		},
	}
	cmd.Flags().IntVar(&o.Pods, "pods", 50, "`number` of pods")
	cmd.Flags().StringVar(&o.DataDir, "data-dir", "", "`directory` for the journal, which is kept (default: a temporary one)")
	return cmd
}
