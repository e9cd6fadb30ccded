// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unindent drops the white space that begins each line.
func unindent(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t ")
	}
	return strings.Join(lines, "\n")
}

// TestReadmeExamples: the README's Go is that of an example, which runs.
func TestReadmeExamples(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(root(t), "manager", "example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no Go")
	}
	for _, b := range blocks {
		if !strings.Contains(unindent(string(example)), unindent(string(b[1]))) {
			t.Errorf("not in manager/example_test.go:\n%s", b[1])
		}
	}
}

// TestDocLinks: relative links in Markdown files lead somewhere.
func TestDocLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for path, data := range files(t) {
		if filepath.Ext(path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := filepath.Join(root(t), filepath.Dir(path), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s leads nowhere", path, m[1])
			}
		}
	}
}
