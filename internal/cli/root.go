// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `statusstore keeps the statuses of a node's pods in a durable journal and sends
them to the API server. A status that was accepted is on disk, and so is what
the API server has acknowledged.

"statusstore run" is the agent. The other commands talk to it on its unix
socket: --socket PATH, or --data-dir DIR, or the environment variable
STATUSSTORE_SOCKET (not for run); otherwise ` + defaultSocket + `.

Exit codes: 0 done, 1 failed, 2 wrong usage.`

// newRoot builds the command tree.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "statusstore",
		Short: "Crash-safe pod status store for Kubernetes node agents",
		Long:  rootLong,
		Example: `  statusstore demo
  statusstore run --data-dir /var/lib/statusstore --node "$(hostname)"
  statusstore get -A`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		// How many letters a misspelt command may be off.
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("no command given")
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SetHelpCommand(newHelp())
	root.AddGroup(
		&cobra.Group{ID: groupAgent, Title: "Agent:"},
		&cobra.Group{ID: groupWrite, Title: "Tell the agent:"},
		&cobra.Group{ID: groupRead, Title: "Ask the agent:"},
	)
	addTo := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	addTo(groupAgent, newRun(s), newDemo(s))
	addTo(groupWrite, newSet(s), newReadiness(s), newStartup(s), newTerminate(s), newFinish(s), newRetain(s))
	addTo(groupRead, newGet(s), newStatus(s), newSnapshot(s), newProxy(s))
	root.AddCommand(newVersion(s), newCompletion(s))
	return root
}

const (
	groupAgent = "agent"
	groupWrite = "write"
	groupRead  = "read"
)

func unknownCommand(root *cobra.Command, name string) error {
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		return usagef("unknown command %q; did you mean %s?", name, strings.Join(similar, " or "))
	}
	return usagef("unknown command %q", name)
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
