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
		statsCommand(std), verifyCommand(std), exportCommand(std), timelineCommand(std),
		compactCommand(std), salvageCommand(std))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	return root
}

// common are the flags that most verbs have. A verb registers those that change
// what it does, and no others.
type common struct {
	socket    string
	output    string
	local     bool
	utc       bool
	redacted  bool
	noHeaders bool
}

// register is for verbs that print a table.
func (f *common) register(c *cobra.Command) {
	f.registerSource(c)
	f.registerOutput(c)
	f.registerZone(c)
	f.registerRedact(c)
	f.registerHeaders(c, "leave the names of columns out of tables")
}

func (f *common) registerSource(c *cobra.Command) {
	c.Flags().StringVar(&f.socket, "socket", "", "read from the running agent that serves this socket `PATH`")
	_ = c.MarkFlagFilename("socket", "sock")
}

func (f *common) registerOutput(c *cobra.Command) {
	c.Flags().StringVarP(&f.output, "output", "o", string(formatTable), "`FORMAT`: table, wide, json, ndjson or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// registerZone is for verbs that are given times or print some.
func (f *common) registerZone(c *cobra.Command) {
	c.Flags().BoolVar(&f.local, "local", false, "times in the local zone: those given without a zone, and those in tables and sentences")
	c.Flags().BoolVar(&f.utc, "utc", false, "times in UTC (the default)")
}

func (f *common) registerRedact(c *cobra.Command) {
	c.Flags().BoolVar(&f.redacted, "redact", false, "replace names, UIDs, addresses, images and messages, the same by the same, so that output is fit to be shown to others")
}

func (f *common) registerHeaders(c *cobra.Command, usage string) {
	c.Flags().BoolVar(&f.noHeaders, "no-headers", false, usage)
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
	out      *output
	damage   *damage
	clock    clock
	now      time.Time
	redact   *redactor
	progress *progress
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
	s := &session{source: src, out: out, clock: f.clock(), now: time.Now(), redact: newRedactor(f.redacted), progress: newProgress(std.err)}
	s.damage = &damage{stderr: std.err, flush: s.flush, source: src.name, path: src.path, redact: s.redact}
	if src.Info().Suspect {
		s.damage.report(errors.New("one of its two meta pages is invalid: the last commit may be missing"))
	}
	err = verb(s)
	if flushed := s.flush(); err == nil {
		err = flushed
	}
	if err == nil {
		err = s.damage.result()
	}
	return errors.Join(err, src.Close())
}

// flush makes way for what is said on standard error.
func (s *session) flush() error {
	s.progress.clear()
	return s.out.flush()
}

func (f *common) prepare(std *streams) (*output, error) {
	if f.local && f.utc {
		return nil, usagef("both --local and --utc")
	}
	form := formatTable
	if f.output != "" {
		var err error
		if form, err = parseFormat(f.output); err != nil {
			return nil, err
		}
	}
	out := newOutput(std.out, form)
	out.bare = f.noHeaders
	return out, nil
}
