// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

func newRetain(s streams) *cobra.Command {
	var conn connection
	output := newFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "retain UID...",
		Short: "Drop all pods but these",
		Long: `Say which pods the node still knows, by UID. The statuses of all other pods are
dropped; the UID of each dropped one is printed.`,
		Example: `  statusstore retain 0d1f4c1e-… 7a2b9f60-…`,
		Args:    wantArgs(cobra.MinimumNArgs(1), "at least one UID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			uids := make([]types.UID, len(args))
			for i, arg := range args {
				if arg == "" {
					return usagef("retain: a UID can't be empty")
				}
				uids[i] = types.UID(arg)
			}
			client := conn.client()
			defer client.Close()
			removed, err := client.Retain(cmd.Context(), uids)
			if err != nil {
				return err
			}
			if output.value == "json" {
				// An empty list and not null.
				return printJSON(s.out, map[string]any{"removed": append([]types.UID{}, removed...)})
			}
			for _, uid := range removed {
				if err := write(s.out, fmt.Appendf(nil, "removed %s\n", escape(string(uid)))); err != nil {
					return err
				}
			}
			return nil
		},
	}
	conn.addFlags(cmd)
	output.addFlag(cmd)
	return cmd
}
