// SPDX-License-Identifier: Apache-2.0

// Command compare measures statusstore beside what it replaces and beside what it
// could have been built on. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/statusstore/statusstore/test/compare/report"
)

// command is one part of the comparison.
type command struct {
	name, about string
	// prepare adds the command's flags and returns what runs once they are parsed.
	prepare func(*flag.FlagSet) func(context.Context, *report.Report) error
}

var commands = []command{serverCommand, scaleCommand, memoryCommand, journalCommand, historyCommand}

var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "compare:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		usage(stderr)
		return errUsage
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		usage(stderr)
		return fmt.Errorf("%w: no command %q", errUsage, args[0])
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "", "also write the result as JSON to this file")
	profile := flags.String("cpuprofile", "", "write a CPU profile of the whole run to this file")
	strict := flags.Bool("strict", false, "fail if a target is missed")
	do := commands[i].prepare(flags)
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	r := report.New(append([]string{"compare"}, args...))
	err := profiled(*profile, func() error { return do(ctx, r) })
	if err != nil && len(r.Sections) == 0 {
		return err
	}
	// What was measured before something failed may have taken an hour.
	err = errors.Join(err, r.WriteText(stdout))
	if *out != "" {
		err = errors.Join(err, writeFile(*out, r.WriteJSON))
	}
	if err != nil {
		return err
	}
	if missed := r.Missed(); *strict && len(missed) > 0 {
		return fmt.Errorf("%d of %d targets missed", len(missed), len(r.Targets))
	}
	return nil
}

func usage(w io.Writer) {
	var b strings.Builder
	b.WriteString("usage: compare COMMAND [flags]; COMMAND -h lists its flags\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.about)
	}
	fmt.Fprint(w, b.String())
}

func profiled(path string, do func() error) error {
	if path == "" {
		return do()
	}
	return writeFile(path, func(w io.Writer) error {
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		return do()
	})
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}
