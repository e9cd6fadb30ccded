// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

const mib = 1 << 20

func TestMain(m *testing.M) {
	// There is memory to spare, and processors are not.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// dir is a folder for a journal.
func dir(t *testing.T) string {
	t.Helper()
	if os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp("/dev/shm", "statusstore-soak-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

// number is a count from the environment, or the default for it.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a count", name, s)
	}
	return n
}

// store is a manager that syncs.
type store struct {
	*manager.Manager
	t    *testing.T
	stop func()
}

// open opens the journal in dir and runs the manager. qps bounds what it asks of
// the server, 0 not at all.
func open(t *testing.T, dir string, api *fakeapi.Server, qps float32, retention journal.Retention) *store {
	t.Helper()
	config := api.RESTConfig()
	if qps > 0 {
		config.QPS, config.Burst = qps, int(qps)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.Open(manager.Options{Path: filepath.Join(dir, journal.FileName), Node: nodeName, Software: "soak", Client: client, Retention: retention})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	s := &store{Manager: m, t: t}
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *store) stats() journal.Stats {
	s.t.Helper()
	stats, err := s.Journal().Stats()
	if err != nil {
		s.t.Fatal(err)
	}
	return stats
}

// set stores the next status of a slot's pod.
func (s *store) set(ctx context.Context, p *slot) error {
	status := p.next()
	c, err := s.SetPodStatus(ctx, p.pod, status)
	if err == nil {
		p.accepted(status.Message, c.Version)
	}
	return err
}

// finish ends a slot's pod: its last status, and the mark that nothing of it is
// left on the node.
func (s *store) finish(ctx context.Context, p *slot) error {
	status := p.last()
	c, err := s.SetPodStatus(ctx, p.pod, status)
	if err != nil {
		return err
	}
	p.accepted(status.Message, c.Version)
	if c, err = s.FinishPod(ctx, p.pod.UID); err == nil && c.Changed {
		p.version = c.Version
	}
	return err
}

// holds compares what is stored with what was accepted.
func (s *store) holds(slots []*slot) {
	s.t.Helper()
	for _, p := range slots {
		if p.newest == "" {
			continue
		}
		e, ok := s.Entry(p.pod.UID)
		if !ok || e.Status.Message != p.newest || e.Version != p.version {
			s.t.Errorf("%s: accepted was %q, version %d; there is %+v", p.pod.Name, p.newest, p.version, e)
		}
	}
}

// verify reads all of a file that nobody has open.
func verify(t *testing.T, dir string) journal.VerifyResult {
	t.Helper()
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	result, err := r.Verify(t.Context(), func(p journal.Problem) { t.Errorf("verify: %v", p) })
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, journal.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// on puts the pods of slots on the server.
func on(t *testing.T, api *fakeapi.Server, slots ...*slot) {
	t.Helper()
	for _, p := range slots {
		if _, err := api.Put(p.pod); err != nil {
			t.Fatal(err)
		}
	}
}

// commas writes a number so that it can be read.
func commas(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return strings.TrimPrefix(s, ",")
}
