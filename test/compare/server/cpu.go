// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// cpu is the processor time of kube-apiserver with etcd, and of this process, which
// is the subject, the counter, the cable and the watch. On a busy machine it tells
// more than the clock.
type cpu struct{ server, own float64 } // seconds

func (c cpu) minus(before cpu) cpu { return cpu{c.server - before.server, c.own - before.own} }

// cpu returns what was used so far. What cannot be read counts as nothing.
func (p *plane) cpu() cpu {
	var c cpu
	for _, pid := range p.pids() {
		c.server += processTime(pid)
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) == nil {
		c.own = time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	}
	return c
}

// pids reads all process numbers from the launcher's state.
func (p *plane) pids() []int {
	data, err := os.ReadFile(filepath.Join(p.dir, "state.json"))
	if err != nil {
		return nil
	}
	var state any
	if json.Unmarshal(data, &state) != nil {
		return nil
	}
	var pids []int
	var walk func(v any)
	walk = func(v any) {
		fields, ok := v.(map[string]any)
		if !ok {
			return
		}
		for name, value := range fields {
			if pid, ok := value.(float64); ok && name == "pid" {
				pids = append(pids, int(pid))
			}
			walk(value)
		}
	}
	walk(state)
	return pids
}

// ticks per second of /proc on all Linux systems that Go supports.
const ticks = 100

func processTime(pid int) float64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name in parentheses may contain anything; user and system time are the
	// 12th and 13th field after it.
	_, rest, ok := bytes.Cut(data, []byte(") "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(string(fields[11]), 64)
	system, err2 := strconv.ParseFloat(string(fields[12]), 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / ticks
}
