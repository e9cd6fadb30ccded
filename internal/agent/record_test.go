// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
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

// TestRecord_UncleanStopServerAway: while the API server fails, what is missing in
// an old LIST proves nothing.
func TestRecord_UncleanStopServerAway(t *testing.T) {
	api, kubeconfig := newAPI(t, newPod(0))
	c := configFor(shortDir(t))
	c.Kubeconfig, c.Mode = kubeconfig, ModeRecord
	r := start(t, c)
	eventually(t, 10*time.Second, func() bool { return r.status().Pods == 1 })
	dir := crashed(t, c.DataDir)
	r.stop()
	if err := api.Remove("default", "web-0"); err != nil {
		t.Fatal(err)
	}
	c.DataDir, c.PassInterval = dir, time.Second
	r = start(t, c)
	eventually(t, 10*time.Second, func() bool { return r.status().LiveSynced })
	api.NetworkDown()
	eventually(t, 10*time.Second, func() bool { return r.status().ServerFailing })
	if s := r.status(); s.Pods != 1 {
		t.Skip("the pass was faster than the outage")
	}
	time.Sleep(2 * time.Second) // two passes with the server away
	if s := r.status(); s.Pods != 1 {
		t.Errorf("got %d pods while the server was away, want 1", s.Pods)
	}
	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() bool { return r.status().Pods == 0 })
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
