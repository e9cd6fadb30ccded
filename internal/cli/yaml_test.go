// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPrintYAML_ControlCharacters has what the YAML parser refuses unescaped, and
// what it would print as it is.
func TestPrintYAML_ControlCharacters(t *testing.T) {
	for _, message := range []string{"a\x7fb", "a\u0085b", "a\u009bb", "a\x1b[31mb", "a\x00b", "a\u202eb", "a\u2028b", "a\ufeffb", "a\ufffeb", "a\U000e0001b", "two\nlines\tand \x7f",
		"\u202e", "a\u2066b\u2069", "a\u200bb\u00adc\u061cd", "two\nlines\u202e\nof text", " \u202e\u202d ", `a\u202e \U00100000 \\U00100000`, "\U00100000\u202e\U00100001", `\U00100000` + "\u202e",
		"\u202e: # - x", "a" + strings.Repeat(" long\u202e", 50)} {
		text, err := json.Marshal(map[string]any{"message": message, "key " + message: []string{message}})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printYAML(&out, text); err != nil {
			t.Errorf("%q: %v", message, err)
			continue
		}
		shown := out.String()
		if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && isUnsafe(r) }); i >= 0 {
			t.Errorf("%q: shown raw: %q", message, shown)
		}
		var got map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got["message"] != message || !reflect.DeepEqual(got["key "+message], []any{message}) {
			t.Errorf("%q: reads as %q, %v:\n%s", message, got, err, shown)
		}
	}
}

// FuzzPrintYAML wants what is printed to be readable, as what it was.
func FuzzPrintYAML(f *testing.F) {
	f.Add("a\u202eb \U00100000", "key\u2028")
	f.Fuzz(func(t *testing.T, message, key string) {
		want := map[string]any{strings.ToValidUTF8(key, "\ufffd"): []any{strings.ToValidUTF8(message, "\ufffd")}}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printYAML(&out, text); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && isUnsafe(r) }); i >= 0 {
			t.Errorf("shown raw: %q", out.String())
		}
		var got map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("reads as %q, %v, want %q:\n%s", got, err, want, out.String())
		}
	})
}
