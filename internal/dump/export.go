// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"time"

	"github.com/spf13/cobra"
)

func exportCommand(std *streams) *cobra.Command {
	var f eventsFlags
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Print all events as NDJSON, for other programs",
		Example: `  journal-dump export /var/lib/statusstore >events.ndjson
  journal-dump export --since 24h journal.db | jq 'select(.status.phase=="Failed")'`,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := f.filterFlags.parse(time.Now())
			if err != nil {
				return err
			}
			f.output = string(formatNDJSON)
			return f.read(c.Context(), std, args, func(s *session) error {
				return f.print(s.out, s.damage, s.clock, want, s.events(c.Context(), want.from, want.to))
			})
		},
	}
	c.Flags().StringVar(&f.socket, "socket", "", "read from the running agent that serves this socket `PATH`")
	f.filterFlags.register(c)
	return c
}
