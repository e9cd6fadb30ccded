// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// proc names one process for good: a pid alone may have gone to another one.
type proc struct {
	PID     int    `json:"pid,omitempty"`
	Started string `json:"started,omitempty"` // start time as /proc shows it
}

// spawn starts a program in a session of its own, so that it outlives the
// launcher and its terminal. Its output is appended to the log.
func spawn(logPath, program string, args ...string) (proc, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return proc{}, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Dir(logPath)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return proc{}, err
	}
	started, _ := startTime(cmd.Process.Pid)
	return proc{cmd.Process.Pid, started}, nil
}

// startTime tells when the process started; false if it is gone or only a
// zombie that waits for its parent.
func startTime(pid int) (string, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The name in the second field may hold spaces: count from its end.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}

func (p proc) running() bool {
	if p.PID == 0 {
		return false
	}
	started, ok := startTime(p.PID)
	return ok && started == p.Started
}

// terminate ends the process: politely first, unless kill is set, and by force
// when it is still there after the grace period.
func (p proc) terminate(grace time.Duration, kill bool) error {
	if !p.running() {
		return nil
	}
	if !kill {
		syscall.Kill(p.PID, syscall.SIGTERM)
		if p.goneWithin(grace) {
			return nil
		}
	}
	syscall.Kill(p.PID, syscall.SIGKILL)
	if !p.goneWithin(10 * time.Second) {
		return fmt.Errorf("process %d survives SIGKILL", p.PID)
	}
	return nil
}

func (p proc) goneWithin(d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !p.running() {
			return true
		}
	}
	return false
}

// memoryMB returns the resident size and its peak.
func (p proc) memoryMB() (now, peak int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 {
			kb, _ := strconv.Atoi(f[1])
			switch f[0] {
			case "VmRSS:":
				now = kb / 1024
			case "VmHWM:":
				peak = kb / 1024
			}
		}
	}
	return now, peak
}

// freePort picks a port below the range that the kernel hands to outgoing
// connections. A client that redials a port of that range while the server is
// down can be given the very same port and connect to itself, and then the
// server cannot come back.
func freePort() (int, error) {
	const low = 20000
	high := 32768
	if data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if f := strings.Fields(string(data)); len(f) == 2 {
			high, _ = strconv.Atoi(f[0])
		}
	}
	if high <= low+100 {
		return 0, fmt.Errorf("outgoing ports start at %d, give --port and --etcd-port", high)
	}
	for range 100 {
		port := low + rand.IntN(high-low)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", low, high)
}

// lock takes the lock of a folder and returns its release.
func lock(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
