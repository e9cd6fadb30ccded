// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

// C29: at least one sync of the journal, after its last write, lies between a
// request and the success that answers it. The agent counts its own system calls,
// so this needs Linux, but no tracer.
func TestC29_SyncedBetweenRequestAndAnswer(t *testing.T) {
	t.Parallel()
	c := childConfig{Dir: shortDir(t), CountCalls: filepath.Join(t.TempDir(), "calls")}
	p := launch(t, c)
	calls := string(read(t, c.CountCalls))
	for i := range 20 {
		p.set(newPod(i%3, message(strings.Repeat("x", i))))
		now := string(read(t, c.CountCalls))
		made := strings.TrimPrefix(now, calls)
		if made == now || !strings.Contains(made, "p") || !strings.HasSuffix(made, "f") {
			t.Errorf("request %d: the journal's writes (p) and syncs (f) were %q, want both, a sync last", i, made)
		}
		calls = now
	}
	p.kill()
}

// C48: idle means no writes, although passes compare all pods again and again.
func TestC48_IdleAgentWritesNothing(t *testing.T) {
	t.Parallel()
	const (
		pods     = 50
		interval = 50 * time.Millisecond
		passes   = 20
	)
	var live []*v1.Pod
	for i := range pods {
		live = append(live, newPod(i))
	}
	api, kubeconfig := newAPI(t, live...)
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: interval, CountCalls: filepath.Join(t.TempDir(), "calls")}
	p := spawn(t, c)
	if !p.await() {
		c.CountCalls = "" // what the file shows has to do
		p = launch(t, c)
	}
	for i := range pods {
		p.set(newPod(i, message("stored")))
	}
	eventually(t, 20*time.Second, func() bool { return len(acksOnDisk(p)) == pods })
	if s := p.status(); s.Pending != 0 {
		t.Fatalf("%d pods are pending", s.Pending)
	}

	path := filepath.Join(c.Dir, journal.FileName)
	look := func() (os.FileInfo, [sha256.Size]byte, []byte) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		var calls []byte
		if c.CountCalls != "" {
			calls = read(t, c.CountCalls)
		}
		return info, sha256.Sum256(read(t, path)), calls
	}
	info, sum, calls := look()
	requests := api.Count()
	time.Sleep(passes * interval)
	infoNow, sumNow, callsNow := look()
	if !infoNow.ModTime().Equal(info.ModTime()) || infoNow.Size() != info.Size() || sumNow != sum || !os.SameFile(info, infoNow) {
		t.Errorf("the file changed: modified %v, %d bytes; before %v, %d", infoNow.ModTime(), infoNow.Size(), info.ModTime(), info.Size())
	}
	if !bytes.Equal(callsNow, calls) {
		t.Errorf("writes (p) and syncs (f) of the journal: %q", callsNow[len(calls):])
	}
	if n := api.Count(); n != requests {
		t.Errorf("%d requests while nothing happened", n-requests)
	}

	// The agent is not asleep, and a write is seen.
	if err := api.SetStatus("default", "web-0", v1.PodStatus{Phase: v1.PodPending}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() bool {
		pod, _ := api.Pod("default", "web-0")
		return pod.Status.Message == "stored"
	})
	p.set(newPod(1, message("another")))
	if _, sumNow, callsNow = look(); sumNow == sum || c.CountCalls != "" && bytes.Equal(callsNow, calls) {
		t.Error("a new status left no trace in the file")
	}
	p.kill()
}

// acksOnDisk are the acks in a copy of the running agent's file.
func acksOnDisk(p *process) map[string]journal.Version {
	p.t.Helper()
	resp, err := p.client.Get("http://statusstore" + httpapi.PathSnapshot)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	copied := filepath.Join(p.t.TempDir(), "copy.db")
	f, err := os.Create(copied)
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = io.Copy(f, resp.Body)
	if err := errors.Join(err, f.Close()); err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("snapshot: %d %v", resp.StatusCode, err)
	}
	r, err := journal.OpenReadOnly(copied, journal.ReadOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	acks, err := r.Acks()
	if err != nil {
		p.t.Fatal(err)
	}
	found := make(map[string]journal.Version, len(acks))
	for uid, ack := range acks {
		found[string(uid)] = ack.Version
	}
	return found
}
