// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is the length at which a file has more than one reason to change.
// Aim at 400; tests and generated files may be longer.
const maxLines = 420

// forbidden are expressions that no text file may match. Each is written so that
// it doesn't match itself.
var forbidden = []struct {
	expr *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`\b(TOD[O]|FIXM[E]|XX[X])\b`), "unfinished work is an issue, not a comment"},
	{regexp.MustCompile(`not[ ]implemented|unimplemente[d]`), "what is not there is not offered"},
	{regexp.MustCompile(`(?m:^|[^a-z.])/(work|farm|root)[/]|\.librar[y]\b`), "a path of one machine"},
	{regexp.MustCompile(`(proxy|sum)\.golang[.]org|npmjs[.]org|deb\.debian[.]org`), "where modules come from is the reader's setting"},
}

// root returns the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+module+"\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod of this module above the test")
		}
	}
}

// files returns all files of the repository, nested modules included, by path.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	dir := root(t)
	all := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || path == filepath.Join(dir, "bin")) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(dir, path); err == nil {
			all[filepath.ToSlash(rel)] = data
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkFile returns one line for each rule that a file breaks.
func checkFile(path string, data []byte) []string {
	var found []string
	if isGo := strings.HasSuffix(path, ".go"); isGo || strings.HasSuffix(path, ".sh") {
		head := data[:min(len(data), 200)]
		if !bytes.Contains(head, []byte("SPDX-License-Identifier: Apache-2.0\n")) {
			found = append(found, fmt.Sprintf("%s: no SPDX line at the top", path))
		}
		generated := bytes.Contains(head, []byte("// Code generated "))
		lines := bytes.Count(data, []byte("\n"))
		if isGo && !strings.HasSuffix(path, "_test.go") && !generated && lines > maxLines {
			found = append(found, fmt.Sprintf("%s: %d lines, at most %d: split it by subject", path, lines, maxLines))
		}
	}
	if strings.HasSuffix(path, ".sum") || bytes.IndexByte(data, 0) >= 0 {
		return found
	}
	for _, f := range forbidden {
		for _, at := range f.expr.FindAllIndex(data, -1) {
			line := 1 + bytes.Count(data[:at[1]], []byte("\n"))
			found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, line, data[at[0]:at[1]], f.why))
		}
	}
	return found
}

func TestFiles(t *testing.T) {
	for path, data := range files(t) {
		for _, line := range checkFile(path, data) {
			t.Error(line)
		}
	}
}

// TestFiles_Fires shows that each rule sees what it is there for.
func TestFiles_Fires(t *testing.T) {
	const spdx = "// SPDX-License-Identifier: Apache-2.0\n\n"
	long := strings.Repeat("\n", maxLines)
	tests := []struct {
		name, path, text, want string
	}{
		{"good", "a/a.go", spdx + "package a\n", ""},
		{"no licence", "a/a.go", "package a\n", "no SPDX line"},
		{"too long", "a/a.go", spdx + long, "split it"},
		{"long test", "a/a_test.go", spdx + long, ""},
		{"unfinished", "README.md", "TO" + "DO: write\n", "README.md:1"},
		{"stub", "a/a.go", spdx + "// not " + "implemented\n", "a/a.go:3"},
		{"machine path", "Makefile", "cp x /ro" + "ot/x\n", "Makefile:1"},
		{"binary", "a.db", "\x00 /ro" + "ot/x\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(checkFile(tt.path, []byte(tt.text)), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPackageComments wants each package described once: in doc.go, or in
// main.go for a command.
func TestPackageComments(t *testing.T) {
	byDir := make(map[string][]*ast.File)
	names := make(map[*ast.File]string)
	fset := token.NewFileSet()
	for path, data := range files(t) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		f, err := parser.ParseFile(fset, path, data, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		byDir[dir] = append(byDir[dir], f)
		names[f] = filepath.Base(path)
	}
	for dir, parsed := range byDir {
		var described []string
		for _, f := range parsed {
			if f.Doc == nil {
				continue
			}
			described = append(described, names[f])
			start, want := f.Doc.Text(), "Package "+f.Name.Name+" "
			if f.Name.Name == "main" {
				want = "Command "
			}
			if !strings.HasPrefix(start, want) {
				t.Errorf("%s/%s: the package comment begins with %.30q, want %q", dir, names[f], start, want)
			}
		}
		allowed := []string{"doc.go"}
		if parsed[0].Name.Name == "main" {
			allowed = append(allowed, "main.go")
		}
		if len(described) != 1 || !slices.Contains(allowed, described[0]) {
			t.Errorf("%s: package comments in %q, want exactly one, in %s", dir, described, strings.Join(allowed, " or "))
		}
	}
}
