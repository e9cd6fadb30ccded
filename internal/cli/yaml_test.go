// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

// TestPrintYAML_ControlCharacters has what the YAML parser refuses unescaped.
func TestPrintYAML_ControlCharacters(t *testing.T) {
	for _, message := range []string{"a\x7fb", "a\u0085b", "a\u009bb", "a\x1b[31mb", "a\x00b", "a\u202eb", "a\u2028b", "a\ufeffb", "a\ufffeb", "a\U000e0001b", "two\nlines\tand \x7f"} {
		text, err := json.Marshal(map[string]string{"message": message})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printYAML(&out, text); err != nil {
			t.Errorf("%q: %v", message, err)
			continue
		}
		shown := out.String()
		if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
			t.Errorf("%q: shown raw: %q", message, shown)
		}
		var got map[string]string
		if err := yaml.Unmarshal(out.Bytes(), &got); err != nil || got["message"] != message {
			t.Errorf("%q: reads as %q, %v:\n%s", message, got["message"], err, shown)
		}
	}
}
