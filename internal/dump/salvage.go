// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/journal"
)

func salvageCommand(std *streams) *cobra.Command {
	var f common
	var socket string
	c := &cobra.Command{
		Use:   "salvage FILE OUT",
		Short: "Write all that is provably good in a damaged journal to OUT",
		Long: `Write every record whose checksum is right to a new journal OUT, which must not
exist. FILE may be damaged in any way, also such that no other command can open it;
it is only read. A newer release's journal is refused. The new journal is verified
before it gets its name; its mode is 0600. Events that retention had dropped may
come back as history.

The exit code is 0 if OUT was written; sequences that were lost, pods whose newest
status was, and pod objects that are left out are named on standard error.`,
		Example: `  journal-dump salvage journal.db salvaged.db`,
		RunE: func(c *cobra.Command, args []string) error {
			if socket != "" {
				return salvageNeedsFile(socket)
			}
			if wrong := wantsBehind("salvage", "", args, "OUT"); wrong != nil {
				return wrong
			}
			if args[0] == standardInput {
				return usagef("salvage needs a file: write what comes on standard input to one (cat >copy.db), then type journal-dump salvage copy.db %s", args[1])
			}
			if isSocket(args[0]) {
				return salvageNeedsFile(args[0])
			}
			return f.salvage(c.Context(), std, args[0], args[1])
		},
	}
	f.registerOutput(c)
	c.Flags().StringVar(&socket, "socket", "", "refused, with what to do instead")
	_ = c.Flags().MarkHidden("socket") // all other commands have it
	return c
}

// salvageNeedsFile: an agent sends copies of sound journals only.
func salvageNeedsFile(socket string) error {
	return usagef("salvage needs a file, and %s is the socket of an agent: stop the agent and salvage its %s, or copy a sound journal with journal-dump compact --socket %[1]s OUT",
		socket, journal.FileName)
}

func (f *common) salvage(ctx context.Context, std *streams, src, dst string) error {
	out, err := f.prepare(std)
	if err != nil {
		return err
	}
	src, err = journalIn(src)
	if err != nil {
		return err
	}
	p := newProgress(std.err)
	result, err := journal.Salvage(p.bytes(ctx, "salvage"), src, dst)
	p.clear()
	if err != nil {
		return err
	}
	for _, r := range result.Lost {
		complain(std.err, fmt.Sprintf("%s: sequences %d to %d are lost", src, r.From, r.To))
	}
	if n := result.LostKept; n > 0 {
		complain(std.err, fmt.Sprintf("%s: of the events that retention had kept before, at least %d are lost; which, nothing tells", src, n))
	}
	if result.EndUnknown {
		complain(std.err, src+": no head record was found; newer events may be missing without a trace")
	}
	for _, uid := range result.LostPods {
		complain(std.err, fmt.Sprintf("%s: the newest status of pod %s is lost; an older one, or none, is in its place", src, uid))
	}
	for _, uid := range result.LostObjects {
		complain(std.err, fmt.Sprintf("%s: the object of pod %s is left out: which of those found is the newest can't be told; its status is there", src, uid))
	}
	if !out.format.text() {
		return out.writeOne(result)
	}
	text := fmt.Sprintf("%s: %d events, %d pods, %d acks, %d objects; %d events lost", dst,
		result.Events, result.Pods, result.Acks, result.Objects, result.LostEvents+result.LostKept)
	if n := len(result.LostObjects); n > 0 {
		text += fmt.Sprintf(", %d objects left out", n)
	}
	out.line("", text)
	return out.flush()
}
