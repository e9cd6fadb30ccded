// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escape makes text from outside fit for a terminal and a table cell: control
// and formatting characters (among them those that reverse the direction of
// writing) and bytes that aren't UTF-8 are shown as in a Go string.
func escape(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, isUnsafe) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case isUnsafe(r) && r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case isUnsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func isUnsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escapeJSON does the same for JSON text. Characters below U+0020 are escaped in
// any JSON string; the others may stand only inside of strings, so each can be
// replaced where it stands. Bytes that aren't UTF-8 become replacement characters.
func escapeJSON(text []byte) []byte {
	return escapeRunes(text, func(r rune) bool { return r >= 0x7f && isUnsafe(r) })
}

// escapeForYAML escapes in JSON text what a YAML parser refuses to read. What is
// escaped then stays so in the YAML that is made of it.
func escapeForYAML(text []byte) []byte {
	return escapeRunes(text, func(r rune) bool {
		return r >= 0x7f && unicode.IsControl(r) || r == 0xfeff || r == 0xfffe || r == 0xffff
	})
}

func escapeRunes(text []byte, unsafe func(rune) bool) []byte {
	s := string(text)
	if utf8.Valid(text) && strings.IndexFunc(s, unsafe) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unsafe(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}
