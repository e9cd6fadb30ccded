// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// childEnv holds the settings of an agent that this binary is run again as.
const childEnv = "STATUSSTORE_TEST_AGENT"

// childConfig are the settings of an agent in a process of its own.
type childConfig struct {
	Dir          string
	Kubeconfig   string
	PassInterval time.Duration
	MaxEvents    int
	// CountCalls names a file that grows by one byte before each write or sync of
	// the journal. Empty: nothing is counted.
	CountCalls string
}

// exitUnsupported is how a child ends that may not look at its system calls.
const exitUnsupported = 77

// runChild is the agent, as the command line runs it. It returns the exit code.
func runChild(settings string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(settings), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	// The input ends with the test, however that ends, and nobody is left over.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // either way it is over
		os.Exit(3)
	}()
	if c.CountCalls != "" {
		if err := countCalls(c.CountCalls); err != nil {
			fmt.Fprintln(os.Stderr, err)
			if errors.Is(err, errors.ErrUnsupported) {
				return exitUnsupported
			}
			return 2
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config := configFor(c.Dir)
	config.Kubeconfig, config.PassInterval, config.QPS = c.Kubeconfig, c.PassInterval, -1
	config.Retention = journal.Retention{MaxEvents: c.MaxEvents}
	config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	config.Ready = func(socket string) { fmt.Println(socket) }
	if err := Run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// countCalls makes the file at path as long as the journal's writes and syncs are
// many. The byte is there before the call is made.
func countCalls(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return crash.Intercept(func(call crash.Call) syscall.Errno {
		if strings.HasSuffix(call.Path, "/"+journal.FileName) {
			if _, err := f.WriteString(string(call.Name)[:1]); err != nil {
				return syscall.EIO
			}
		}
		return 0
	}, crash.Fsync, crash.Fdatasync, crash.Pwrite)
}

// process is an agent in a process of its own.
type process struct {
	*running
	cmd   *exec.Cmd
	input io.Closer // the child ends with it
	ready chan string
	ended chan struct{} // closed when the process is gone
	quiet bool          // what it logged is of no interest any more
}

// spawn starts an agent and does not wait for it.
func spawn(t *testing.T, c childConfig) *process {
	t.Helper()
	settings, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		running: &running{t: t, log: &logBuffer{}},
		cmd:     exec.Command(os.Args[0]),
		ready:   make(chan string, 1), ended: make(chan struct{}),
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBERNETES_SERVICE_HOST=") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, childEnv+"="+string(settings))
	p.cmd.Stderr = p.log
	input, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.input = input
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			select {
			case p.ready <- lines.Text():
			default:
			}
		}
		_ = p.cmd.Wait() // ProcessState tells the same
		close(p.ended)
	}()
	transport := &http.Transport{
		MaxIdleConnsPerHost: 16,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", p.socket)
		},
	}
	p.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	t.Cleanup(func() {
		p.end()
		if t.Failed() && !p.quiet {
			t.Logf("log of the agent, process %d, %v:\n%s", p.cmd.Process.Pid, p.cmd.ProcessState, p.log)
		}
	})
	return p
}

// launch starts an agent and waits until it serves.
func launch(t *testing.T, c childConfig) *process {
	t.Helper()
	p := spawn(t, c)
	if !p.await() {
		t.Skipf("system calls can't be watched here: %s", p.log)
	}
	return p
}

// await waits until the agent serves. It reports false if the agent may not look
// at its system calls.
func (p *process) await() bool {
	p.t.Helper()
	select {
	case p.socket = <-p.ready:
	case <-p.ended:
		if p.cmd.ProcessState.ExitCode() == exitUnsupported {
			return false
		}
		p.t.Fatalf("the agent ended before it was ready: %v", p.cmd.ProcessState)
	case <-time.After(slack * 20 * time.Second):
		p.t.Fatal("the agent is not ready after 20 s")
	}
	return true
}

// end is SIGKILL, whatever the process does, and the end of all that belongs to it.
func (p *process) end() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
	_ = p.input.Close() // closed by Wait already
	p.client.CloseIdleConnections()
}

// kill sends SIGKILL and wants that to be what ended the agent: it did not end by
// itself, in no panic and with no data race.
func (p *process) kill() {
	p.t.Helper()
	p.end()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		p.t.Fatalf("the agent ended before it was killed: %v", p.cmd.ProcessState)
	}
	for _, word := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if strings.Contains(p.log.String(), word) {
			p.t.Fatalf("the agent reported a %q", word)
		}
	}
}

// exchange sends a request and returns the answer. It may be called concurrently.
func (p *process) exchange(method, path string, in any) (code int, header http.Header, answer []byte, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return 0, nil, nil, err
	}
	if in == nil {
		body = nil
	}
	req, err := http.NewRequest(method, "http://statusstore"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, answer, err
}

// shown is what the agent shows of a pod.
func (p *process) shown(pod *v1.Pod) acceptance {
	p.t.Helper()
	code, header, body, err := p.exchange(http.MethodGet, httpapi.PodPath(pod.Namespace, pod.Name), nil)
	var got v1.Pod
	version, err1 := strconv.ParseUint(header.Get(httpapi.HeaderVersion), 10, 64)
	sequence, err2 := strconv.ParseUint(header.Get(httpapi.HeaderSequence), 10, 64)
	if err := errors.Join(err, err1, err2, json.Unmarshal(body, &got)); err != nil || code != http.StatusOK {
		p.t.Fatalf("get %s: %d %v: %s", pod.Name, code, err, body)
	}
	return acceptance{got.UID, journal.Version(version), journal.Sequence(sequence), got.Status.Message}
}

// eventsFrom returns the events from a sequence to the head.
func (p *process) eventsFrom(first journal.Sequence) map[journal.Sequence]wire.Event {
	p.t.Helper()
	code, _, body, err := p.exchange(http.MethodGet, fmt.Sprintf("%s?from=%d", httpapi.PathEvents, first), nil)
	if err != nil || code != http.StatusOK {
		p.t.Fatalf("events: %d %v", code, err)
	}
	events := make(map[journal.Sequence]wire.Event)
	for line := range strings.Lines(string(body)) {
		var e wire.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatal(err)
		}
		if e.Error != "" {
			p.t.Errorf("sequence %d: %s", e.Sequence, e.Error)
		}
		events[e.Sequence] = e
	}
	return events
}
