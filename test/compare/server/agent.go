// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// agent is the program statusstore, as users run it.
type agent struct {
	cmd    *exec.Cmd
	socket string
	exited chan error
	stderr *bytes.Buffer
	client kubernetes.Interface // over its socket
	http   *http.Client
}

// buildAgent builds the program from the module around this one.
func buildAgent(ctx context.Context, source, dir string) (program string, err error) {
	program = filepath.Join(dir, "statusstore")
	out, err := exec.CommandContext(ctx, "go", "build", "-C", source, "-o", program, "./cmd/statusstore").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	return program, nil
}

// startAgent returns when the agent serves. Without a kubeconfig it only stores.
func startAgent(ctx context.Context, program, dir, node, kubeconfig string) (*agent, error) {
	args := []string{"run", "--data-dir", dir, "--node", node, "--qps", "-1"}
	if kubeconfig != "" {
		args = append(args, "--kubeconfig", kubeconfig)
	}
	a := &agent{
		cmd:    exec.Command(program, args...),
		exited: make(chan error, 1),
		stderr: new(bytes.Buffer),
	}
	a.cmd.Stderr = a.stderr
	stdout, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if socket, ok := strings.CutPrefix(lines.Text(), "ready socket="); ok {
				ready <- socket
			}
		}
		a.exited <- a.cmd.Wait()
	}()
	select {
	case a.socket = <-ready:
	case err := <-a.exited:
		return nil, fmt.Errorf("the agent ended before it was ready: %w\n%s", err, a.stderr)
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), a.kill())
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.socket)
	}
	a.http = &http.Client{Transport: &http.Transport{DialContext: dial}}
	a.client, err = kubernetes.NewForConfig(&rest.Config{Host: "http://statusstore", Dial: dial, QPS: -1})
	if err != nil {
		return nil, errors.Join(err, a.kill())
	}
	return a, nil
}

func (a *agent) kill() error {
	err := a.cmd.Process.Kill()
	<-a.exited
	if a.http != nil {
		a.http.CloseIdleConnections()
	}
	return err
}

// pending is what the agent says about itself.
type pending struct {
	Pods    int `json:"pods"`
	Pending int `json:"pending"`
}

func (a *agent) status(ctx context.Context) (p pending, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://statusstore/statusstore/v1/status", nil)
	if err != nil {
		return p, err
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return p, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return p, fmt.Errorf("status of the agent: %s", resp.Status)
	}
	return p, json.NewDecoder(resp.Body).Decode(&p)
}

// acked waits until nothing is pending.
func (a *agent) acked(ctx context.Context, pods int) error {
	for {
		p, err := a.status(ctx)
		if err != nil || p.Pods == pods && p.Pending == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are pending: %w", p.Pending, p.Pods, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// resident is a process's memory in MiB.
type resident struct {
	all, peak float64
	file      float64 // pages of files, the journal's and the program's
}

func (a *agent) memory() (m resident, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "VmRSS:":
			m.all = kib / 1024
		case "VmHWM:":
			m.peak = kib / 1024
		case "RssFile:":
			m.file = kib / 1024
		}
	}
	return m, nil
}
