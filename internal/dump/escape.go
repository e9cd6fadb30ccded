// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape makes text from pods safe for a terminal and keeps it on one line:
// whatever is not printable becomes a Go escape, such as \n, \x1b or \u202e.
// Text that is printable throughout is returned as it is.
func escape(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += n
	}
	return b.String()
}

// escapeJSON replaces what encoding/json leaves raw inside strings and terminals
// act on: DEL and the C1 controls U+0080 to U+009F.
func escapeJSON(b []byte) []byte {
	if !bytes.ContainsFunc(b, terminalControl) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if terminalControl(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}

func terminalControl(r rune) bool { return r >= 0x7f && r <= 0x9f }

// rawControl reports whether b holds a byte or character that a terminal acts
// on, newlines aside.
func rawControl(b []byte) bool {
	return bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\n' || terminalControl(r) })
}

// escapeLines escapes each line by itself: the newlines are the program's own.
func escapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}
