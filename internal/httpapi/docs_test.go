// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// errorCodes are the codes from 400 on that the sources answer with.
func errorCodes(t *testing.T) []int {
	t.Helper()
	named := make(map[string]int)
	for code := 400; code < 600; code++ {
		if text := http.StatusText(code); text != "" {
			named[strings.ReplaceAll(text, " ", "")] = code
		}
	}
	// What apimachinery makes has its code inside.
	made := map[string]int{
		"BadRequest": 400, "Forbidden": 403, "NotFound": 404, "Conflict": 409, "ResourceExpired": 410,
		"RequestEntityTooLargeError": 413, "Invalid": 422,
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	for _, path := range append(sources, "../agent/access.go", "../agent/listen.go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bhttp\.Status([A-Z]\w+)`).FindAllSubmatch(data, -1) {
			if code, ok := named[string(m[1])]; ok {
				codes = append(codes, code)
			}
		}
		for _, m := range regexp.MustCompile(`\bapierrors\.New([A-Z]\w+)`).FindAllSubmatch(data, -1) {
			code, ok := made[string(m[1])]
			if !ok {
				t.Errorf("%s: which code has apierrors.New%s?", path, m[1])
			}
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// TestDocs_Errors keeps the table in docs/http.md what the handlers answer.
func TestDocs_Errors(t *testing.T) {
	data, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(data), "## Errors\n")
	if !found {
		t.Fatal("docs/http.md has no section about errors")
	}
	var told []int
	for _, row := range regexp.MustCompile(`(?m)^\| ([0-9, ]+) \|`).FindAllStringSubmatch(table, -1) {
		for word := range strings.SplitSeq(row[1], ", ") {
			code, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, code)
		}
	}
	slices.Sort(told)
	if codes := errorCodes(t); !slices.Equal(told, codes) {
		t.Errorf("docs/http.md tells of %v, the handlers answer %v", told, codes)
	}
}
