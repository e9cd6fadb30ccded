// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag with a few allowed values, the first of which is its default.
type choice struct {
	value   string
	what    string
	allowed []string
}

func newChoice(what string, allowed ...string) *choice {
	return &choice{value: allowed[0], what: what, allowed: allowed}
}

// newFormat is the choice of -o.
func newFormat(allowed ...string) *choice { return newChoice("format", allowed...) }

func (c *choice) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(c, "output", "o", "output `format`: "+strings.Join(c.allowed, ", "))
	c.complete(cmd, "output")
}

func (c *choice) complete(cmd *cobra.Command, flag string) {
	// It fails only for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(c.allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return c.what }

func (c *choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
	}
	c.value = value
	return nil
}
