// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/statusstore/statusstore"

// scope says how far a rule looks.
type scope string

const (
	directly   scope = "directly"
	indirectly scope = "directly or indirectly"
)

// rule forbids imports to one package, by path prefix. Prefixes that begin with
// "./" are packages of this module.
type rule struct {
	pkg    string
	scope  scope
	forbid []string
	why    string
}

// rules are the arrows of docs/architecture.md:
// cmd, tools → manager → syncer → projection → journal, with podstatus as a leaf.
var rules = []rule{
	{"journal", indirectly, []string{"./projection", "./podstatus", "./syncer", "./manager", "./internal/agent", "./internal/httpapi", "./internal/cli", "./internal/fakeapi", "./cmd", "./tools"},
		"the journal is the bottom layer"},
	{"journal", indirectly, []string{"k8s.io/api", "k8s.io/client-go"},
		"a status is opaque bytes to the journal; whoever reads the file needs no Kubernetes"},
	{"projection", indirectly, []string{"./syncer", "./manager", "./internal/agent", "./internal/httpapi", "./internal/cli", "./internal/fakeapi", "./cmd", "./tools"},
		"the projection knows only the journal's events"},
	{"projection", indirectly, []string{"k8s.io/client-go"},
		"a fold over events talks to nobody"},
	{"projection", directly, []string{"os", "go.etcd.io/bbolt", "net", "net/http"},
		"a fold over events touches neither disk nor network"},
	{"podstatus", indirectly, []string{"k8s.io/client-go"},
		"pure functions on statuses talk to nobody"},
	{"podstatus", indirectly, []string{"./journal", "./projection", "./syncer", "./manager", "./internal", "./cmd", "./tools"},
		"podstatus is a leaf"},
	{"podstatus", directly, []string{"os", "net", "net/http", "log/slog"},
		"pure functions have no effects"},
	{"syncer", indirectly, []string{"./manager", "./internal/agent", "./internal/httpapi", "./internal/cli", "./internal/fakeapi", "./cmd", "./tools"},
		"the syncer sees the manager only through its own interfaces"},
	{"syncer", directly, []string{"go.etcd.io/bbolt", "os"},
		"only the journal touches the file"},
	{"manager", indirectly, []string{"./internal/agent", "./internal/httpapi", "./internal/cli", "./internal/fakeapi", "./cmd", "./tools", "github.com/spf13/cobra"},
		"the library carries none of the agent to those who embed it"},
	{"manager", directly, []string{"go.etcd.io/bbolt"},
		"only the journal touches the file"},
	{"internal/fakeapi", indirectly, []string{"./journal", "./projection", "./syncer", "./manager", "./podstatus"},
		"a fake that shares code with what it tests shares its faults"},
	{"internal/httpapi", indirectly, []string{"./internal/cli", "./internal/agent", "./internal/fakeapi", "./cmd", "./tools"},
		"handlers are wired by the agent, not the other way round"},
	{"internal/wire", indirectly, []string{"./projection", "./syncer", "./manager", "./internal", "./cmd", "./tools", "k8s.io/client-go"},
		"the form of an event in JSON belongs to nobody who shows it"},
	{"internal/dump/scan", indirectly, []string{"./projection", "./podstatus", "./syncer", "./manager", "./internal/wire", "./internal/httpapi", "./internal/agent", "./cmd", "./tools", "k8s.io/client-go"},
		"the fast reader knows the file's records and nothing else"},
	{"internal/dump/scan", directly, []string{"go.etcd.io/bbolt"},
		"the fast reader reads pages itself"},
	{"tools/journal-dump", indirectly, []string{"./manager", "./syncer", "./internal/agent", "k8s.io/client-go/kubernetes"},
		"a reader of journals neither writes nor syncs"},
}

// pkg is what one go list tells of a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	GoFiles      []string
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

// listPackages asks go list once for all packages of the module.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles,Imports,Deps,TestImports,XTestImports", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

// within says whether an import path is the prefix or below it.
func within(path, prefix string) bool {
	if rest, ok := strings.CutPrefix(prefix, "./"); ok {
		prefix = module + "/" + rest
	}
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// check returns one line for each broken rule and each rule without a package.
func check(pkgs []pkg, rules []rule) []string {
	var found []string
	for _, r := range rules {
		i := slices.IndexFunc(pkgs, func(p pkg) bool { return p.ImportPath == module+"/"+r.pkg })
		if i < 0 {
			found = append(found, fmt.Sprintf("%s: a rule names it, but there is no such package", r.pkg))
			continue
		}
		imports := pkgs[i].Imports
		if r.scope == indirectly {
			imports = pkgs[i].Deps
		}
		for _, path := range imports {
			if slices.ContainsFunc(r.forbid, func(prefix string) bool { return within(path, prefix) }) {
				found = append(found, fmt.Sprintf("%s must not import %s %s: %s", r.pkg, path, r.scope, r.why))
			}
		}
	}
	for _, p := range pkgs {
		for _, path := range slices.Concat(p.Deps, p.TestImports, p.XTestImports) {
			if within(path, "./test") {
				found = append(found, fmt.Sprintf("%s must not import %s: what is below test/ are modules of their own", p.ImportPath, path))
			}
		}
		for word := range strings.SplitSeq(p.ImportPath, "/") {
			if slices.Contains([]string{"util", "utils", "common", "misc", "helper", "helpers"}, word) {
				found = append(found, fmt.Sprintf("%s: %q says nothing about what is inside", p.ImportPath, word))
			}
		}
	}
	return found
}

func TestImports(t *testing.T) {
	for _, line := range check(listPackages(t), rules) {
		t.Error(line)
	}
}

// TestImports_Fires shows that the checks above see what they are there for.
func TestImports_Fires(t *testing.T) {
	at := func(name string, p pkg) pkg { p.ImportPath = module + "/" + name; return p }
	noNet := []rule{{"journal", directly, []string{"net"}, "why"}}
	noAPI := []rule{{"journal", indirectly, []string{"k8s.io/api", "./manager"}, "why"}}
	tests := []struct {
		name  string
		pkgs  []pkg
		rules []rule
		want  string
	}{
		{"direct import", []pkg{at("journal", pkg{Imports: []string{"net"}})}, noNet, "must not import net directly"},
		{"below a prefix", []pkg{at("journal", pkg{Imports: []string{"net/http"}})}, noNet, "must not import net/http"},
		{"indirect import where only direct ones count", []pkg{at("journal", pkg{Deps: []string{"net"}})}, noNet, ""},
		{"a longer word is no prefix", []pkg{at("journal", pkg{Deps: []string{"k8s.io/apimachinery/pkg/types"}})}, noAPI, ""},
		{"indirect import", []pkg{at("journal", pkg{Deps: []string{"k8s.io/api/core/v1"}})}, noAPI, "must not import k8s.io/api/core/v1"},
		{"own package", []pkg{at("journal", pkg{Deps: []string{module + "/manager"}})}, noAPI, "must not import " + module + "/manager"},
		{"package is gone", nil, noNet, "no such package"},
		{"test module", []pkg{at("x", pkg{XTestImports: []string{module + "/test/e2e"}})}, nil, "modules of their own"},
		{"name without meaning", []pkg{at("internal/util", pkg{})}, nil, "says nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(check(tt.pkgs, tt.rules), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
