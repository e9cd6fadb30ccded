// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/journal"
)

func compactCommand(std *streams) *cobra.Command {
	var f common
	c := &cobra.Command{
		Use:   "compact FILE OUT",
		Short: "Write a smaller copy without free pages to OUT",
		Long: `Write a copy of the journal without its free pages to OUT, which must not exist. The
copy is verified before it gets that name; its mode is 0600. FILE is only read. With
--socket, FILE is left out.

The copy has all that FILE has: to show a history to others, type export --redact.`,
		Example: `  journal-dump compact journal.db smaller.db
  journal-dump compact --socket /var/lib/statusstore/statusstore.sock copy.db`,
		RunE: func(c *cobra.Command, args []string) error {
			if wrong := wantsBehind("compact", f.socket, args, "OUT"); wrong != nil {
				return wrong
			}
			args, dst := args[:len(args)-1], args[len(args)-1]
			return f.read(c.Context(), std, args, func(s *session) error {
				result, err := journal.Compact(s.progress.bytes(c.Context(), "compact"), s.path, dst)
				s.progress.clear()
				if err != nil {
					return err
				}
				if !s.out.format.text() {
					return s.out.writeOne(result)
				}
				s.out.line("", fmt.Sprintf("%s: %d bytes, %s had %d", dst, result.After, s.name, result.Before))
				return s.out.flush()
			})
		},
	}
	f.registerSource(c)
	f.registerOutput(c)
	return c
}
