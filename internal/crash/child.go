// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Self returns a command that runs this program again, with more variables in
// its environment.
func Self(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Child is another process of this program that answers requests one at a time.
// What kills it does not harm us.
type Child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr bytes.Buffer
}

// StartChild starts one. With the given environment the program must call Answer.
func StartChild(env ...string) (*Child, error) {
	c := &Child{cmd: Self(env)}
	c.cmd.Stderr = &c.stderr
	in, err1 := c.cmd.StdinPipe()
	out, err2 := c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, c.cmd.Start()); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c.in, c.out = in, json.NewDecoder(out)
	return c, nil
}

// DiedError says that the child ended, or was killed because it took too long,
// while it worked on a request.
type DiedError struct {
	State  string // how it ended
	Stderr string // what it said at last
}

func (e *DiedError) Error() string { return "child: " + e.State + "\n" + e.Stderr }

// Ask sends one request and waits for the answer. After an error, which is a
// *DiedError, the child is gone.
func (c *Child) Ask(request, answer any, timeout time.Duration) error {
	slow := time.AfterFunc(timeout, func() { c.cmd.Process.Kill() })
	defer slow.Stop()
	err := json.NewEncoder(c.in).Encode(request)
	if err == nil {
		err = c.out.Decode(answer)
	}
	if err == nil {
		return nil
	}
	c.in.Close()
	c.cmd.Wait() // its state is reported below
	state := c.cmd.ProcessState.String()
	if !slow.Stop() {
		state = fmt.Sprintf("no answer for %v; %s", timeout, state)
	}
	const tail = 8 << 10
	text := c.stderr.Bytes()
	return &DiedError{State: state, Stderr: string(text[max(0, len(text)-tail):])}
}

// Close ends the child.
func (c *Child) Close() error {
	c.in.Close()
	return c.cmd.Wait()
}

// Answer serves requests from r until it ends.
func Answer[Q, A any](r io.Reader, w io.Writer, answer func(Q) A) error {
	in, out := json.NewDecoder(r), json.NewEncoder(w)
	for {
		var q Q
		switch err := in.Decode(&q); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read request: %w", err)
		}
		if err := out.Encode(answer(q)); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
}
