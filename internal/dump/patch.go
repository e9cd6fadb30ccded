// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/statusstore/statusstore/internal/wire"
)

// patchWidth is the width that a change on one line may have.
const patchWidth = 80

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// printChanges shows an event as git log -p shows a commit.
func printChanges(out *output, clock clock, e *Event) error {
	title := fmt.Sprintf("event %d  %s  %s", e.Sequence, clock.format(e.Time), e.Kind)
	if e.Reason != "" && string(e.Reason) != e.Kind {
		title += " (" + string(e.Reason) + ")"
	}
	if e.Name != "" {
		title += fmt.Sprintf("  %s version %d", e.pod(), e.Version)
	}
	out.line(bold, title)
	if d := attributes(e); d != "" {
		out.line("", "    "+d)
	}
	writeChanges(out, e.Changes)
	out.WriteByte('\n')
	return out.flush()
}

func attributes(e *Event) string {
	bare := Event{Event: wire.Event{Attributes: e.Attributes, Finished: e.Finished}}
	return bare.detail()
}

// writeChanges prints one field a line, or three lines where one is too long.
func writeChanges(out *output, changes []Change) {
	for _, c := range changes {
		path, old, new := escape(c.Path), value(c.Old), value(c.New)
		if n := utf8.RuneCountInString(path + old + new); n+10 <= patchWidth {
			out.WriteString("    " + path + ": ")
			out.paint(red, old)
			out.WriteString(" → ")
			out.paint(green, new)
			out.WriteByte('\n')
			continue
		}
		out.WriteString("    " + path + ":\n")
		out.line(red, "      - "+old)
		out.line(green, "      + "+new)
	}
}

// value prints a leaf. Text is quoted where it could be mistaken for something else.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "(none)"
	case string:
		if v == "" || strings.TrimSpace(v) != v || strings.HasPrefix(v, "(") || strings.HasPrefix(v, `"`) {
			return strconv.Quote(v)
		}
		return escape(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return escape(fmt.Sprint(v))
		}
		return string(escapeJSON(b))
	}
}

// paint writes text that is escaped already, in colour on a terminal only.
func (o *output) paint(code, text string) {
	if o.colour && code != "" {
		text = code + text + plain
	}
	o.WriteString(text)
}

func (o *output) line(code, text string) {
	o.paint(code, escape(text))
	o.WriteByte('\n')
}
