// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// format is how results are printed.
type format string

const (
	formatTable  format = "table"
	formatWide   format = "wide"
	formatJSON   format = "json"
	formatNDJSON format = "ndjson"
	formatYAML   format = "yaml"
)

var formats = []string{"table", "wide", "json", "ndjson", "yaml"}

func parseFormat(s string) (format, error) {
	for _, f := range formats {
		if s == f {
			return format(f), nil
		}
	}
	return "", usagef("output %q: want %s", s, strings.Join(formats, ", "))
}

func (f format) text() bool { return f == formatTable || f == formatWide }

// output is standard output, buffered. Errors of writing stay and are reported
// by flush.
type output struct {
	*bufio.Writer
	format   format
	terminal bool
	colour   bool
	bare     bool // tables have no header
	width    int  // of the terminal; 0 if there is none
}

func newOutput(w io.Writer, f format) *output {
	o := &output{Writer: bufio.NewWriterSize(w, 64<<10), format: f}
	if file, ok := w.(*os.File); ok {
		size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
		if o.terminal = err == nil; o.terminal {
			o.width = int(size.Col)
		}
		o.colour = o.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return o
}

func (o *output) flush() error {
	if err := o.Flush(); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}

// column is one of a table. Rows are printed as they come, so the width is a
// usual one; longer cells push the rest of their row.
type column[T any] struct {
	name  string
	width int
	wide  bool // only in wide output
	cell  func(T) string
}

// list prints items one by one in any format.
type list[T any] struct {
	out     *output
	columns []column[T]
	header  bool
	n       int
}

// newList prints a header in tables unless asked not to.
func newList[T any](out *output, columns []column[T]) *list[T] {
	return &list[T]{out: out, columns: columns, header: !out.bare}
}

func (l *list[T]) add(item T) error {
	l.n++
	switch l.out.format {
	case formatTable, formatWide:
		if l.n == 1 && l.header {
			l.row(func(c column[T]) string { return c.name })
		}
		l.row(func(c column[T]) string { return c.cell(item) })
	case formatJSON:
		// One line for the whole array: it parses as a whole and line by line.
		l.out.WriteByte("[,"[min(l.n, 2)-1])
		if err := writeJSON(l.out, item); err != nil {
			return err
		}
	case formatNDJSON:
		if err := writeJSON(l.out, item); err != nil {
			return err
		}
		l.out.WriteByte('\n')
	case formatYAML:
		if err := writeYAML(l.out, []T{item}); err != nil {
			return err
		}
	}
	if l.n == 1 { // the first row at once, however long the rest takes
		return l.out.flush()
	}
	return nil
}

// close ends the list, also after an error: an array stays an array.
func (l *list[T]) close() error {
	switch {
	case l.out.format == formatJSON && l.n == 0:
		l.out.WriteString("[]\n")
	case l.out.format == formatJSON:
		l.out.WriteString("]\n")
	case l.out.format == formatYAML && l.n == 0:
		l.out.WriteString("[]\n")
	}
	return l.out.flush()
}

func (l *list[T]) row(cell func(column[T]) string) {
	gap := 0
	for _, c := range l.columns {
		if c.wide && l.out.format != formatWide {
			continue
		}
		for range gap {
			l.out.WriteByte(' ')
		}
		text := escape(cell(c))
		if text == "" {
			text = "-"
		}
		l.out.WriteString(text)
		gap = max(c.width-utf8.RuneCountInString(text), 0) + 2
	}
	l.out.WriteByte('\n')
}

// writeJSON writes one line without its end.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	_, err := w.Write(escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))))
	return err
}

// writeYAML writes a document. JSON is YAML: what the YAML encoder would print
// with raw control characters is printed as JSON instead.
func writeYAML(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	b = escapeJSON(b) // the YAML parser refuses raw control characters
	out, err := yaml.JSONToYAML(b)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if !rawControl(out) {
		_, err = w.Write(out)
		return err
	}
	if len(b) > 1 && b[0] == '[' { // an item of a list that goes on
		b = append([]byte("- "), b[1:len(b)-1]...)
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// writeOne prints a single result that is not text.
func (o *output) writeOne(v any) error {
	var err error
	if o.format == formatYAML {
		err = writeYAML(o, v)
	} else if err = writeJSON(o, v); err == nil {
		err = o.WriteByte('\n')
	}
	if err != nil {
		return err
	}
	return o.flush()
}
