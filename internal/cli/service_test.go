// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	unitFile    = "../../deploy/systemd/statusstore.service"
	packageFile = "../../deploy/nfpm.yaml"
)

// systemdAnalyze runs the tool, where there is one.
func systemdAnalyze(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// TestService_Verify has systemd read the unit: no key is unknown or misplaced.
func TestService_Verify(t *testing.T) {
	unit := readFile(t, unitFile)
	const program = "/usr/bin/statusstore" // has to exist
	if !strings.Contains(unit, "ExecStart="+program+" run ") {
		t.Fatalf("the unit does not start %s", program)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(unit string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, program, self)), 0o600); err != nil {
			t.Fatal(err)
		}
		return systemdAnalyze(t, "verify", "--man=no", file)
	}
	if out := verify(unit); out != "" {
		t.Errorf("systemd says:\n%s", out)
	}
	if out := verify(strings.Replace(unit, "[Service]\n", "[Service]\nNoSuchKey=1\n", 1)); !strings.Contains(out, "NoSuchKey") {
		t.Errorf("an unknown key is not noticed: %q", out)
	}
}

// TestService_Security: the unit's exposure is what docs/security.md says, with the
// release of systemd that it names, and not much more with others.
func TestService_Security(t *testing.T) {
	out := systemdAnalyze(t, "security", "--offline=true", "--no-pager", unitFile)
	m := regexp.MustCompile(`Overall exposure level for statusstore\.service: ([0-9.]+) (\w+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no exposure in:\n%s", out)
	}
	got, err := strconv.ParseFloat(m[1], 64)
	if err != nil || got > 2 {
		t.Errorf("the exposure is %s, want at most 2:\n%s", m[1], out)
	}
	said := regexp.MustCompile(`\(systemd (\d+)\) rates it ([0-9.]+), "(\w+)"`).FindStringSubmatch(readFile(t, "../../docs/security.md"))
	if said == nil {
		t.Fatal("docs/security.md does not say the exposure")
	}
	version := strings.Fields(systemdAnalyze(t, "--version"))[1]
	if version == said[1] && (m[1] != said[2] || m[2] != said[3]) {
		t.Errorf("systemd %s says %s %s, docs/security.md %s %s", version, m[1], m[2], said[2], said[3])
	}
}

// content is a file of the package.
type content struct {
	Src      string `json:"src"`
	Dst      string `json:"dst"`
	Type     string `json:"type"`
	FileInfo struct {
		Mode fs.FileMode `json:"mode"`
	} `json:"file_info"`
}

func packageContents(t *testing.T) (contents []content, scripts map[string]string) {
	t.Helper()
	var p struct {
		Contents []content         `json:"contents"`
		Scripts  map[string]string `json:"scripts"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, packageFile)), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Contents) == 0 || len(p.Scripts) == 0 {
		t.Fatal("the package has no contents, or no scripts")
	}
	return p.Contents, p.Scripts
}

// TestPackage_Sources: what the Debian package is made of is there, what the unit
// needs is in it, and its scripts are shell.
func TestPackage_Sources(t *testing.T) {
	contents, scripts := packageContents(t)
	var installed []string
	for _, c := range contents {
		installed = append(installed, c.Dst)
		if built := strings.HasPrefix(c.Src, "dist/"); !built {
			if _, err := os.Stat(filepath.Join("../..", c.Src)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, needed := range []string{"/usr/bin/statusstore", "/etc/statusstore/config.yaml", "/usr/share/doc/statusstore/operations.md"} {
		if !strings.Contains(readFile(t, unitFile), needed) || !slices.Contains(installed, needed) {
			t.Errorf("%s is not in both the unit and the package", needed)
		}
	}
	for when, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join("../..", script)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
	}
}

// TestPackage_Installs builds the Debian package and unpacks it below another root.
// $NFPM is the tool, which "make deb" provides.
func TestPackage_Installs(t *testing.T) {
	nfpm := os.Getenv("NFPM")
	if nfpm == "" {
		t.Skip("$NFPM is not set: use make deb")
	}
	tree := t.TempDir()
	command := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	for _, name := range []string{"deploy", "docs", "LICENSE"} {
		command("../..", "cp", "-r", name, tree)
	}
	command("../..", "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X github.com/statusstore/statusstore/internal/cli.release=v1.2.3",
		"-o", filepath.Join(tree, "dist")+"/", "./cmd/statusstore", "./tools/journal-dump")
	command(tree, nfpm, "package", "--config", "deploy/nfpm.yaml", "--packager", "deb", "--target", "dist/")
	debs, err := filepath.Glob(filepath.Join(tree, "dist", "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("got packages %v, %v", debs, err)
	}
	if out := command(tree, "dpkg-deb", "--info", debs[0]); !strings.Contains(out, "Version: 1.2.3\n") || !strings.Contains(out, "Architecture: amd64\n") {
		t.Errorf("got:\n%s", out)
	}
	root := filepath.Join(t.TempDir(), "root")
	command(tree, "dpkg-deb", "--extract", debs[0], root)
	contents, _ := packageContents(t)
	for _, c := range contents {
		info, err := os.Stat(filepath.Join(root, c.Dst))
		if err != nil {
			t.Error(err)
		} else if info.Mode() != c.FileInfo.Mode {
			t.Errorf("%s: got mode %v, want %v", c.Dst, info.Mode(), c.FileInfo.Mode)
		}
	}
	control := filepath.Join(t.TempDir(), "control")
	command(tree, "dpkg-deb", "--control", debs[0], control)
	if got := readFile(t, filepath.Join(control, "conffiles")); strings.TrimSpace(got) != "/etc/statusstore/config.yaml" {
		t.Errorf("got conffiles %q", got)
	}
	for _, script := range []string{"postinst", "prerm"} {
		if info, err := os.Stat(filepath.Join(control, script)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v", script, info, err)
		}
	}
	if out := command(tree, filepath.Join(root, "usr/bin/statusstore"), "version"); !strings.Contains(out, "v1.2.3") {
		t.Errorf("the installed program says %q", out)
	}
	out := command(tree, filepath.Join(root, "usr/bin/statusstore"), "run", "--config", filepath.Join(root, "etc/statusstore/config.yaml"), "--print-config")
	if !strings.Contains(out, "dataDir: /var/lib/statusstore") {
		t.Errorf("the installed configuration gives:\n%s", out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
