// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/statusstore/statusstore/internal/cli/socket"
)

// child is the agent's process.
type child struct {
	cmd    *exec.Cmd
	client *socket.Client
	log    *tailBuffer
	ended  chan struct{} // closed after Wait
	err    error         // of Wait; read it after ended is closed
}

// startChild runs the command and returns when it has said that it is ready.
func startChild(ctx context.Context, command []string, timeout time.Duration) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the agent is not ready after %s", timeout))
	defer cancel()
	c := &child{log: &tailBuffer{}, ended: make(chan struct{})}
	c.cmd = exec.Command(command[0], command[1:]...)
	c.cmd.Env = agentEnv(os.Environ())
	c.cmd.Stderr = c.log
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	ready := make(chan string, 1)
	go c.reap(stdout, ready)
	select {
	case path := <-ready:
		c.client = socket.New(path)
		return c, nil
	case <-c.ended:
		return nil, fmt.Errorf("the agent ended before it was ready (%v): %s", c.cmd.ProcessState, c.log.String())
	case <-ctx.Done():
		err := c.kill()
		return nil, errors.Join(context.Cause(ctx), err)
	}
}

// reap waits for the process. The pipe must be read to its end first.
func (c *child) reap(stdout io.Reader, ready chan<- string) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if path, ok := strings.CutPrefix(lines.Text(), "ready socket="); ok {
			select {
			case ready <- path:
			default:
			}
		}
	}
	c.err = c.cmd.Wait()
	close(c.ended)
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// kill sends SIGKILL to the process, if it still runs, and waits for its end.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("kill the agent: %w", err)
	}
	<-c.ended
	c.close()
	return nil
}

// terminate sends SIGTERM and wants exit status 0 in time.
func (c *child) terminate(timeout time.Duration) error {
	defer c.close()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the agent: %w", err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.ended:
		if c.err != nil {
			return fmt.Errorf("the agent after SIGTERM: %w: %s", c.err, c.log.String())
		}
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("the agent runs on %s after SIGTERM", timeout), c.kill())
	}
}

func (c *child) close() {
	if c.client != nil {
		c.client.Close()
	}
}

// agentEnv leaves out the settings of another agent.
func agentEnv(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "STATUSSTORE_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 4 << 10

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailBytes {
		t.b = append([]byte(nil), t.b[len(t.b)-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b[max(0, len(t.b)-tailBytes):]))
}
