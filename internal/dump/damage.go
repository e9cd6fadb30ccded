// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/statusstore/statusstore/journal"
)

// damage names on standard error what could not be read, and remembers that
// something could not.
type damage struct {
	stderr io.Writer
	flush  func() error // brings the rows before the damage out first
	source string
	path   string // what source is called in errors
	redact *redactor
	count  int
	last   string
}

// report names one damaged place.
func (d *damage) report(err error) {
	text := d.describe(err)
	if text == d.last { // the index and the events tell the same thing
		return
	}
	d.last = text
	d.count++
	d.print(text)
}

// note names something odd that is no damage.
func (d *damage) note(format string, args ...any) { d.print(fmt.Sprintf(format, args...)) }

func (d *damage) print(text string) {
	if err := d.flush(); err != nil {
		return // reported by the verb when it ends
	}
	complain(d.stderr, d.source+": "+d.redact.quoted(text))
}

// describe leaves out what the line says anyway: the file and the general hint.
func (d *damage) describe(err error) string {
	if e, ok := errors.AsType[*journal.CorruptError](err); ok && e.Err != nil && errors.Is(e.Kind, journal.ErrCorrupt) {
		place := ""
		if e.Bucket != "" {
			place = "bucket " + e.Bucket + ": "
		}
		if e.Sequence != 0 {
			place += fmt.Sprintf("sequence %d: ", e.Sequence)
		}
		return place + d.rename(e.Err.Error())
	}
	return d.rename(err.Error())
}

func (d *damage) rename(text string) string { return strings.ReplaceAll(text, d.path, d.source) }

// result is what the verb ends with if nothing else went wrong.
func (d *damage) result() error {
	if d.count == 0 {
		return nil
	}
	places := "1 place"
	if d.count > 1 {
		places = fmt.Sprintf("%d places", d.count)
	}
	return fmt.Errorf("%w: %s: %s, named above; what is good was printed", errDamaged, d.source, places)
}

// complain writes one line of the program's own.
func complain(w io.Writer, text string) {
	text = escape(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
	fmt.Fprintf(w, "journal-dump: %s\n", text)
}
