// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command line args, without the program's name, and returns the
// exit code. SIGINT and SIGTERM end the command in an orderly way; a second one
// ends the process, unless it is the agent's (see untilSignal).
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return execute(ctx, args, streams{in: stdin, out: stdout, err: stderr})
}

func execute(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errReported) {
		return exitFailed
	}
	fmt.Fprintf(s.err, "statusstore: %s\n", oneLine(err))
	if _, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(s.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// oneLine returns the error's text, made fit for a terminal and for one line.
func oneLine(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
	return escape(text)
}

// errReported: the reason was printed already.
var errReported = errors.New("failed as reported")

// usageError is a command line that makes no sense. It leads to exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func quoted(args []string) string {
	if len(args) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprintf("%q", args), "[]")
}

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// wantArgs makes a refusal by check a wrong usage.
func wantArgs(check cobra.PositionalArgs, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%s: want %s, got %s", cmd.Name(), usage, quoted(args))
		}
		return nil
	}
}
