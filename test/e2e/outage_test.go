// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestG3_OutageAndCrash changes all pods while the API server is away and kills
// the agent. When both are back, the pods that differ are patched once each, and
// nothing else is asked for.
func TestG3_OutageAndCrash(t *testing.T) {
	const (
		n       = 100
		changes = 5
		same    = 10 // pods whose last change leads back to what the server has
	)
	ns := createNamespace(t, "outage")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	a.start(t)
	set := func(i int, message string) error {
		pods[i] = withStatus(pods[i], running(pods[i], message))
		_, err := a.client.set(pods[i])
		return err
	}
	inParallel(t, n, func(i int) error { return set(i, "before") })
	a.waitAcked(t, n)

	plane.down(t)
	inParallel(t, n, func(i int) error {
		for change := range changes {
			message := fmt.Sprintf("change %d", change)
			if change == changes-1 && i < same {
				message = "before"
			}
			if err := set(i, message); err != nil {
				return err
			}
		}
		return nil
	})
	// The pods that are back at what the server has may count as acked already.
	if s := a.client.status(t); s.Pods != n || s.Pending < n-same || s.LastSyncError == "" {
		t.Errorf("during the outage: %d of %d pods pending, last error %q, want at least %d and an error", s.Pending, s.Pods, s.LastSyncError, n-same)
	}
	a.kill(t)
	a.start(t)
	records := a.client.records(t)
	for _, pod := range pods {
		if got := records[pod.UID].Version; got != 1+changes {
			t.Errorf("%s after SIGKILL: got version %d, want %d", pod.Name, got, 1+changes)
		}
	}

	since := markRequests(t)
	plane.up(t)
	begin := time.Now()
	a.waitAcked(t, n)
	t.Logf("all acked %.1fs after the API server was ready", time.Since(begin).Seconds())
	assertLive(t, ns, pods)
	quiet(t, 1)

	got := agentRequests(t, since)
	assertVerbs(t, got, map[string]int{"list": 1, "watch": 1, "patch": n - same})
	want := make(map[string]int)
	for _, pod := range pods[same:] {
		want[pod.Name] = 1
	}
	if patched := got.verb("patch").served().names(); !maps.Equal(patched, want) {
		t.Errorf("patched: got %v, want %v", patched, want)
	}
	a.terminate(t)
	a.verifyJournal(t)
}

// TestG3_RestartUnchanged restarts an agent that has nothing to say, once after
// SIGTERM and once after SIGKILL.
func TestG3_RestartUnchanged(t *testing.T) {
	const n = 100
	ns := createNamespace(t, "restart")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	a.start(t)
	inParallel(t, n, func(i int) error {
		pods[i] = withStatus(pods[i], running(pods[i], "unchanged"))
		_, err := a.client.set(pods[i])
		return err
	})
	a.waitAcked(t, n)

	for _, stop := range []struct {
		name string
		end  func(*testing.T)
	}{{"SIGTERM", a.terminate}, {"SIGKILL", a.kill}} {
		t.Run(stop.name, func(t *testing.T) {
			stop.end(t)
			since := markRequests(t)
			a.start(t)
			a.waitAcked(t, n)
			quiet(t, 1)
			assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1})
		})
	}
	assertLive(t, ns, pods)
}

// TestG1_KillLoop kills the agent again and again while pods change. What was
// accepted is there after each start, versions only grow, and in the end the
// server has the newest status of each pod.
func TestG1_KillLoop(t *testing.T) {
	const (
		n       = 40
		writers = 8
		kills   = 20
	)
	ns := createNamespace(t, "killloop")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	accepted := make([]int64, n) // newest version that the agent said yes to
	total := 0
	for range kills {
		a.start(t)
		records := a.client.records(t)
		for i, pod := range pods {
			if got := records[pod.UID].Version; got < accepted[i] {
				t.Fatalf("%s: version %d was accepted, %d is there", pod.Name, accepted[i], got)
			}
		}
		var wg sync.WaitGroup
		counts := make([]int, writers)
		for w := range writers {
			wg.Go(func() {
				for i := w; ; i = (i + writers) % n {
					version, err := a.client.set(withStatus(pods[i], running(pods[i], rand.Text())))
					if err != nil {
						return // killed: nobody knows whether this one was stored
					}
					if version <= accepted[i] {
						t.Errorf("%s: got version %d after %d", pods[i].Name, version, accepted[i])
					}
					accepted[i] = version
					counts[w]++
				}
			})
		}
		time.Sleep(time.Duration(50+mathrand.IntN(300)) * time.Millisecond)
		a.kill(t)
		wg.Wait()
		for _, count := range counts {
			total += count
		}
	}
	t.Logf("%d kills, %d accepted statuses", kills, total)
	if total < kills*writers {
		t.Errorf("only %d statuses were accepted between %d kills", total, kills)
	}

	a.start(t)
	a.waitAcked(t, n)
	live := livePods(t, ns)
	for _, pod := range pods {
		if diff := sameStatus(a.client.pod(t, pod).Status, live[pod.Name].Status); diff != "" {
			t.Errorf("%s on the server (-agent +server):\n%s", pod.Name, diff)
		}
	}
	a.terminate(t)
	a.verifyJournal(t)
}

// TestG5_RestoredServer puts the server back to an older backup under a running
// agent. The server's resourceVersions go back with it, so a watch that goes on
// from where it was would wait for a long time.
func TestG5_RestoredServer(t *testing.T) {
	const n = 5
	usePlane(t)
	ns := createNamespace(t, "restored")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	a.start(t)
	set := func(message string) {
		t.Helper()
		for i := range pods {
			pods[i] = withStatus(pods[i], running(pods[i], message))
			a.client.mustSet(t, pods[i])
		}
		a.waitAcked(t, n)
	}
	offline := func(act func(data, backup string) error) {
		t.Helper()
		err := plane.stop()
		if err == nil {
			err = act(filepath.Join(plane.dir, "etcd"), filepath.Join(plane.dir, "backup"))
		}
		if err == nil {
			err = plane.start()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set("when the backup was made")
	offline(func(data, backup string) error { return os.CopyFS(backup, os.DirFS(data)) })
	for change := range 5 {
		set(fmt.Sprintf("after the backup, change %d", change))
	}
	offline(func(data, backup string) error {
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		return os.Rename(backup, data)
	})
	begin := time.Now()
	eventually(t, 2*time.Minute, func() error {
		for name, pod := range livePods(t, ns) {
			if got, want := pod.Status.Message, pods[0].Status.Message; got != want {
				return fmt.Errorf("%s on the restored server: got message %q, want %q", name, got, want)
			}
		}
		return nil
	})
	t.Logf("the restored server is up to date after %.1fs", time.Since(begin).Seconds())
	a.waitAcked(t, n)
	assertLive(t, ns, pods)
}
