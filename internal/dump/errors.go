// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // also: damage was found
	exitUsage  = 2
)

// errDamaged: the journal could be read, but not all of it. What and where was
// printed already.
var errDamaged = errors.New("journal is damaged")

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode says how the process ends for an error.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// flatten returns the errors that were joined, however deeply.
func flatten(err error) []error {
	switch e := err.(type) {
	case nil:
		return nil
	case *journal.CorruptError, *projection.EventError:
		return []error{err}
	case interface{ Unwrap() []error }:
		var all []error
		for _, inner := range e.Unwrap() {
			all = append(all, flatten(inner)...)
		}
		return all
	default:
		return []error{err}
	}
}

// wantsBehind checks the arguments of a verb that wants more than FILE, and says
// what to type.
func wantsBehind(verb, socket string, args []string, names ...string) error {
	want := append([]string{"FILE"}, names...)
	if socket != "" {
		want = append([]string{"--socket PATH"}, names...)
		args = append([]string{socket}, args...)
	}
	usage := "journal-dump " + verb + " " + strings.Join(want, " ")
	switch {
	case slices.Contains(args, ""):
		return usagef("an argument of %s is empty: type %s", verb, usage)
	case len(args) < len(want):
		return usagef("%s: %s is missing: type %s", verb, strings.Join(want[len(args):], " and "), usage)
	case len(args) > len(want):
		return usagef("%s: %q is too much: type %s", verb, args[len(want):], usage)
	case want[len(want)-1] == "OUT" && args[len(args)-1] == standardInput:
		return usagef("%s writes a file, which can't be %s: name one", verb, standardInput)
	}
	return nil
}
