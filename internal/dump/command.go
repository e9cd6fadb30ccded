// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// streams are what the process was started with.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs journal-dump and returns its exit code: 0 fine, 1 failed or damage
// found, 2 wrong usage.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := NewCommand(stdin, stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		complain(stderr, err.Error())
	}
	code := exitCode(err)
	if code == exitUsage {
		fmt.Fprintln(stderr, `Run "journal-dump --help" for usage.`)
	}
	return code
}

// NewCommand returns the command tree, for Main and for documentation made of it.
func NewCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	std := &streams{in: stdin, out: stdout, err: stderr}
	root := eventsCommand(std)
	root.Use = "journal-dump [events] FILE"
	root.Short = "Read the journal of a statusstore agent"
	root.Long = `journal-dump reads the journal of a statusstore agent: what changed, when and in
which order, and what the API server has not acknowledged.

FILE is a journal, a data directory that has one, or - for a copy on standard
input. Of a running agent use --socket PATH instead: the agent sends a consistent
copy and goes on undisturbed. FILE is never created or changed.

Exit codes: 0 fine, 1 failed or damage found, 2 wrong usage. Of a damaged journal
everything that is good is printed, in order; what is not is named on standard
error.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(eventsCommand(std), stateCommand(std), unsyncedCommand(std), diffCommand(std), whyCommand(std),
		statsCommand(std), verifyCommand(std), exportCommand(std),
		compactCommand(std), salvageCommand(std))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	return root
}

// common are the flags that every verb has.
type common struct {
	socket string
	output string
	local  bool
}

func (f *common) register(c *cobra.Command) {
	c.Flags().StringVar(&f.socket, "socket", "", "read from the running agent that serves this socket `PATH`")
	c.Flags().StringVarP(&f.output, "output", "o", string(formatTable), "`FORMAT`: table, wide, json, ndjson or yaml")
	c.Flags().BoolVar(&f.local, "local", false, "print times in the local zone, not in UTC (tables and sentences)")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagFilename("socket", "sock")
}

func (f *common) clock() clock {
	if f.local {
		return clock{time.Local}
	}
	return clock{time.UTC}
}

// session is one run of a verb on an open journal.
type session struct {
	*source
	out    *output
	damage *damage
	clock  clock
	now    time.Time
}

// read opens the place, runs the verb and brings out what it printed and found.
func (f *common) read(ctx context.Context, std *streams, args []string, verb func(*session) error) error {
	out, err := f.prepare(std)
	if err != nil {
		return err
	}
	where, err := placeOf(args, f.socket)
	if err != nil {
		return err
	}
	src, err := where.open(ctx, std.in)
	if err != nil {
		return err
	}
	s := &session{source: src, out: out, clock: f.clock(), now: time.Now(),
		damage: &damage{stderr: std.err, flush: out.flush, source: src.name, path: src.path}}
	if src.Info().Suspect {
		s.damage.report(errors.New("one of its two meta pages is invalid: the last commit may be missing"))
	}
	err = verb(s)
	if flushed := out.flush(); err == nil {
		err = flushed
	}
	if err == nil {
		err = s.damage.result()
	}
	return errors.Join(err, src.Close())
}

func (f *common) prepare(std *streams) (*output, error) {
	form, err := parseFormat(f.output)
	if err != nil {
		return nil, err
	}
	return newOutput(std.out, form), nil
}
