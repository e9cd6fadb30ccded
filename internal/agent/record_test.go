// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"hash/maphash"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// crashed returns a data directory as the running agent would leave it by a crash
// now. Nothing must be written meanwhile.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	copied := shortDir(t)
	for _, name := range []string{journal.FileName, journal.FileName + journal.MarkSuffix} {
		write(t, filepath.Join(copied, name), read(t, filepath.Join(dir, name)))
	}
	return copied
}

// kinds counts the events of each pod by kind.
func (r *running) kinds() map[string]int {
	r.t.Helper()
	n := make(map[string]int)
	for _, e := range r.events() {
		n[string(e.UID)+" "+e.Kind]++
	}
	return n
}

// TestRecord_UncleanStop: after a crash a pod is not taken for gone at the first
// look, but at the next; a recreated one is seen at once.
func TestRecord_UncleanStop(t *testing.T) {
	for _, left := range []int{0, 1} { // pods that are still there
		api, kubeconfig := newAPI(t, newPod(0), newPod(1))
		c := configFor(shortDir(t))
		c.Kubeconfig, c.Mode = kubeconfig, ModeRecord
		r := start(t, c)
		eventually(t, 10*time.Second, func() bool { return r.status().Pods == 2 })
		dir := crashed(t, c.DataDir)
		r.stop()
		for i := left; i < 2; i++ {
			if err := api.Remove("default", newPod(i).Name); err != nil {
				t.Fatal(err)
			}
		}

		c.DataDir, c.PassInterval = dir, 24*time.Hour
		r = start(t, c)
		eventually(t, 10*time.Second, func() bool { return r.status().LiveSynced })
		if !r.status().UncleanStart {
			t.Fatal("not an unclean start")
		}
		// Without the rule they go within milliseconds.
		for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if n := r.status().Pods; n != 2 {
				t.Fatalf("%d left: at the first look: got %d pods, want 2", left, n)
			}
		}
		dir = crashed(t, dir)
		r.stop()

		c.DataDir, c.PassInterval = dir, 50*time.Millisecond
		r = start(t, c)
		eventually(t, 10*time.Second, func() bool { return r.status().Pods == left })
		if got := r.kinds(); got["uid-1 removed"] != 1 || got["uid-1 set"] != 1 || got["uid-0 set"] != 1 {
			t.Errorf("%d left: got %v, want each change once", left, got)
		}
		r.stop()
	}
}

// lookoutAway is a watch that has listed no pods and fails since.
type lookoutAway struct{ failure atomic.Value }

func (l *lookoutAway) Synced() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
func (l *lookoutAway) LastError() (string, time.Time) {
	return l.failure.Load().(string), time.Time{}
}
func (l *lookoutAway) List() []*v1.Pod { return nil }

// TestRecord_UncleanStopServerAway: while the API server fails, what is missing in
// an old LIST proves nothing, pass after pass.
func TestRecord_UncleanStopServerAway(t *testing.T) {
	api, kubeconfig := newAPI(t, newPod(0))
	c := configFor(shortDir(t))
	c.Kubeconfig, c.Mode = kubeconfig, ModeRecord
	r := start(t, c)
	eventually(t, 10*time.Second, func() bool { return r.status().Pods == 1 })
	dir := crashed(t, c.DataDir)
	api.NetworkDown()
	eventually(t, 10*time.Second, func() bool { return r.status().ServerFailing }) // which is what LastError says
	r.stop()

	m, err := manager.Open(manager.Options{Path: journalPath(dir), Node: c.journalNode()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Status().UncleanStart {
		t.Fatal("not an unclean start")
	}
	synctest.Test(t, func(t *testing.T) {
		const pass = 10 * time.Second
		r := &recorder{m: m, seed: maphash.MakeSeed(), pass: pass}
		for i := range r.lanes {
			r.lanes[i] = make(chan seen, 1)
		}
		removals := func() (n int) {
			synctest.Wait()
			for _, lane := range r.lanes {
				n += len(lane)
			}
			return n
		}
		live := &lookoutAway{}
		live.failure.Store("connection refused")
		go r.removeMissed(t.Context(), live)
		time.Sleep(100*pass + pass/2)
		if n := removals(); n != 0 {
			t.Errorf("%d pods were removed while the server was away", n)
		}
		live.failure.Store("")
		if n := removals(); n != 0 {
			t.Errorf("%d pods were removed before the next pass", n)
		}
		time.Sleep(pass)
		if n := removals(); n != 1 {
			t.Errorf("%d pods were removed with the server back, want 1", n)
		}
	})
}

// TestRecord_AllNodes records pods of any node, over restarts once each, with no
// requests but LIST and WATCH, in a journal that no agent of one node opens.
func TestRecord_AllNodes(t *testing.T) {
	onNode := func(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = name } }
	api, kubeconfig := newAPI(t, newPod(0, onNode("node-1")), newPod(1, onNode("node-2")), newPod(2, onNode("")))
	c := configFor(shortDir(t))
	c.Node, c.AllNodes, c.Kubeconfig, c.Mode = "", true, kubeconfig, ModeRecord
	for range 3 {
		r := start(t, c)
		eventually(t, 10*time.Second, func() bool { s := r.status(); return s.LiveSynced && s.Pods == 3 })
		if got := r.get(newPod(1)).Spec.NodeName; got != "node-2" {
			t.Errorf("got node %q, want node-2", got)
		}
		r.stop()
	}
	r := start(t, c)
	eventually(t, 10*time.Second, func() bool { return r.status().LiveSynced })
	if got := len(r.events()); got != 3 {
		t.Errorf("got %d events after 3 restarts, want 3", got)
	}
	if s := r.status(); s.Node != allNodes {
		t.Errorf("got node %q, want %q", s.Node, allNodes)
	}
	r.stop()
	for _, request := range api.Requests(fakeapi.Match{}) {
		if request.Verb != fakeapi.List && request.Verb != fakeapi.Watch {
			t.Errorf("record mode sent %+v", request)
		}
	}
	c.AllNodes, c.Node = false, "node-1"
	if _, err := begin(t, c); !errors.Is(err, journal.ErrWrongNode) {
		t.Errorf("an agent of one node: got %v, want %v", err, journal.ErrWrongNode)
	}
	if entries, err := filepath.Glob(filepath.Join(c.DataDir, "*.damaged-*")); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, journal.FileName)); err != nil {
		t.Error(err)
	}
}
