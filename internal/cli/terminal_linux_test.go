// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal runs a command whose output is a pseudo-terminal, whatever its exit code.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: terminal FILE COMMAND...")
	}
	screen, tty, err := openTerminal()
	ts.Check(err)
	defer screen.Close()
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"STATUSSTORE_SOCKET", "TERM", "NO_COLOR", "GORACE", "HOME"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	err = cmd.Start()
	tty.Close()
	ts.Check(err)
	var shown bytes.Buffer
	if _, err := shown.ReadFrom(screen); err != nil && !errors.Is(err, syscall.EIO) { // EIO is its end
		ts.Fatalf("read the terminal: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		ts.Logf("%v", err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), shown.Bytes(), 0o600))
	ts.Logf("%s", shown.Bytes())
}

// openTerminal returns the two ends of a pseudo-terminal.
func openTerminal() (screen, tty *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	if err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		n, err = unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		screen.Close()
		return nil, nil, err
	}
	return screen, tty, nil
}
