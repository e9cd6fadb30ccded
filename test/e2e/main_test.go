// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The shared fixtures of the run, set by TestMain.
var (
	plane    *controlPlane
	programs binaries
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	dir := os.Getenv("STATUSSTORE_E2E_DIR")
	if dir == "" {
		// Not t.TempDir: a socket's path may have 107 bytes at most.
		if dir, err = os.MkdirTemp("", "sse2e"); err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return 0, err
	}
	begin := time.Now()
	step := func(text string) {
		fmt.Printf("e2e: %6.1fs  %s\n", time.Since(begin).Seconds(), text)
	}

	step("building the agent")
	if programs, err = buildPrograms(filepath.Join(dir, "bin")); err != nil {
		return 0, err
	}
	step("building the control plane, minutes if nothing is cached")
	if err := buildControlPlane(); err != nil {
		return 0, err
	}
	step("starting the control plane")
	if plane, err = startControlPlane(filepath.Join(dir, "plane")); err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := plane.stop(); err == nil {
			err = stopErr
		}
	}()
	step("running the scenarios")
	return m.Run(), nil
}
