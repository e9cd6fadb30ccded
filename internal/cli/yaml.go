// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// printYAML prints JSON text as YAML. YAML's writer escapes what a YAML reader
// refuses, but not what turns the direction of writing or is not to be seen. So
// each such character gets a marker before it, which makes the writer put the whole
// text in double quotes; there the character can be escaped.
func printYAML(w io.Writer, text []byte) error {
	var value any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	text, err := json.Marshal(value) // now without escapes
	if err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	marker := unusedMarker(string(text))
	if text, err = json.Marshal(marked(value, marker)); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	out, err := yaml.JSONToYAML(escapeForYAML(text))
	if err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return write(w, []byte(unmarked(string(out), marker)))
}

// unusedMarker is a character for private use that the text neither has nor spells.
// YAML's writer never leaves it as it is.
func unusedMarker(text string) rune {
	marker := rune(0x100000)
	for strings.ContainsRune(text, marker) || strings.Contains(text, escapedMarker(marker)) {
		marker++
	}
	return marker
}

// escapedMarker is the marker as YAML's writer writes it.
func escapedMarker(marker rune) string { return fmt.Sprintf(`\U%08X`, marker) }

// marked is a JSON value with the marker before each character that is to be escaped.
func marked(value any, marker rune) any {
	switch v := value.(type) {
	case string:
		return mark(v, marker)
	case []any:
		for i := range v {
			v[i] = marked(v[i], marker)
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, element := range v {
			out[mark(key, marker)] = marked(element, marker)
		}
		return out
	default:
		return value
	}
}

func mark(s string, marker rune) string {
	if strings.IndexFunc(s, invisible) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if invisible(r) {
			b.WriteRune(marker)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func invisible(r rune) bool { return r > 0x7f && isUnsafe(r) }

// unmarked takes the markers out, which the writer has escaped, and escapes what
// follows them unless the writer did.
func unmarked(s string, marker rune) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, escapedMarker(marker))
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if r, size := utf8.DecodeRuneInString(after); invisible(r) {
			fmt.Fprintf(&b, `\u%04X`, r)
			after = after[size:]
		}
		s = after
	}
}
