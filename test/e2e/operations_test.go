// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// operationsSteps are the commands below one heading of docs/operations.md, with
// directories of the test in place of the system's.
func operationsSteps(t *testing.T, heading, data, backups string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/operations.md has no %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	m := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(section)
	if m == nil {
		t.Fatalf("%q has no commands", heading)
	}
	return strings.NewReplacer("/var/lib/statusstore", data, "/var/backups", backups).Replace(m[1])
}

// TestOperations runs what docs/operations.md says about backup, restore, a full
// disk and a damaged file.
func TestOperations(t *testing.T) {
	pod := newPod("default", "kept", "node-operations")
	pod.UID = "00000000-0000-0000-0000-0000000000aa"
	a := newAgent(t, "node-operations")
	a.kubeconfig = "" // no cluster
	a.start(t)
	a.client.mustSet(t, withStatus(pod, running(pod, "before the damage")))
	backups := t.TempDir()
	do := func(heading string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-x", "-c", operationsSteps(t, heading, a.dir, backups))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(programs.agent)+":"+os.Getenv("PATH"), "STATUSSTORE_SOCKET="+filepath.Join(a.dir, "statusstore.sock"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := do("Backup"); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	if out, err := do("Full disk"); err != nil || !strings.Contains(out, "Health:") {
		t.Errorf("full disk: %v\n%s", err, out)
	}
	a.terminate(t)

	// Damage: zeros over a part of the file.
	journal := filepath.Join(a.dir, "journal.db")
	f, err := os.OpenFile(journal, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(make([]byte, 2*os.Getpagesize()), 0) // both meta pages
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if out, err := runProgram(t, nil, programs.agent, "run", "--data-dir", a.dir, "--node", a.node); err == nil || !strings.Contains(out, journal) {
		t.Fatalf("the agent on the damaged file: %v\n%s", err, out)
	}
	out, err := do("Damaged file")
	t.Logf("damaged file: %v\n%s", err, out)
	a.start(t)
	if got := a.client.pod(t, pod); got.Status.Message != "before the damage" {
		t.Errorf("salvaged: got %q", got.Status.Message)
	}
	a.terminate(t)

	// Restore: the snapshot in the place of the journal.
	snapshot, err := os.ReadFile(filepath.Join(backups, "statusstore.db"))
	if err == nil {
		err = os.Rename(journal, journal+".old")
	}
	if err == nil {
		err = os.WriteFile(journal, snapshot, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.start(t)
	if got := a.client.pod(t, pod); got.Status.Message != "before the damage" {
		t.Errorf("restored: got %q", got.Status.Message)
	}
	a.terminate(t)
	a.verifyJournal(t)
}
