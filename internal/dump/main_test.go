// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes the test binary the program of the scripts as well.
func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		code := Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		status, err := os.ReadFile("/proc/self/status")
		if err == nil {
			err = os.WriteFile(path, status, 0o600)
		}
		if err != nil {
			panic(err)
		}
		os.Exit(code)
	}
	testscript.Main(leakChecked{m}, map[string]func(){
		"journal-dump": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// childVariable makes the test binary the program, for a test that measures it, and
// names the file for what the kernel then says of the process. What wait tells of
// a child's peak memory is its parent's, if that had more.
const childVariable = "JOURNAL_DUMP_CHILD"

// leakChecked runs the tests and then looks for goroutines that are left.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return code
}
