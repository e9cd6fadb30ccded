// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// The tests in this file have a server in memory and a clock of their own, which stands
// still while anybody works: how long a status takes is exact.

// start is how long the program may take until it has listed the pods.
const start = 10 * time.Second

// process is one run of the program, but for its main function.
type process struct {
	dataDir string
	out     bytes.Buffer // may be read when the process has ended
	stop    func()       // ends it like SIGTERM
}

func startProcess(t *testing.T, s *server, dataDir string) *process {
	t.Helper()
	p := &process{dataDir: dataDir}
	ctx, cancel := context.WithCancel(t.Context())
	o := options{node: "node", dataDir: dataDir, out: &p.out, log: slog.New(slog.DiscardHandler)}
	var group errgroup.Group
	group.Go(func() error { return serve(ctx, o, s.config()) })
	p.stop = func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Errorf("the program ended with %v, want nil", err)
		}
	}
	return p
}

// TestTravel has each status on the server as soon as it is stored. The framework would
// ask for it every five seconds.
func TestTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		p := startProcess(t, s, t.TempDir())
		defer p.stop()
		time.Sleep(start)
		var pods []*v1.Pod
		due := make(map[string]time.Time)
		for i := range 5 {
			lives := time.Duration(10+1100*i) * time.Millisecond
			pod := newPod(fmt.Sprint("pod-", i), v1.RestartPolicyNever, runsForKey, lives.String())
			pods, due[pod.Name] = append(pods, pod), time.Now().Add(lives)
		}
		s.create(pods...)
		time.Sleep(time.Minute)
		for _, w := range s.takeWrites() {
			if !terminal(w.status.Phase) {
				continue
			}
			if late := w.at.Sub(due[w.name]); late >= time.Second {
				t.Errorf("%s: the server was told %s after the end, want it at once", w.name, late)
			}
			delete(due, w.name)
		}
		if len(due) > 0 {
			t.Errorf("the server was not told of the ends of %v", due)
		}
	})
}

// asked counts how often the framework asks the provider for a status.
type asked struct {
	*provider
	count atomic.Int32
}

func (a *asked) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	a.count.Add(1)
	return a.provider.GetPodStatus(ctx, namespace, name)
}

// TestNotifyPods has the framework neither ask for statuses nor report any, as it would if
// the provider had no NotifyPods.
func TestNotifyPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		client, err := clientFor(s.config(), frameworkAgent)
		if err != nil {
			t.Fatal(err)
		}
		store, err := manager.Open(manager.Options{Path: filepath.Join(t.TempDir(), journal.FileName)})
		if err != nil {
			t.Fatal(err)
		}
		mine := podsOfNode(client, "node")
		p := newProvider(store, mine.Core().V1().Pods().Lister(), options{out: new(bytes.Buffer), log: slog.New(slog.DiscardHandler)})
		config := podControllerConfig(client, mine, p, new(record.FakeRecorder))
		a := &asked{provider: p}
		config.Provider = a
		pods, err := node.NewPodController(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return p.run(ctx) })
		group.Go(func() error { return pods.Run(ctx, 1) })
		mine.Start(ctx.Done())

		pod := newPod("a", v1.RestartPolicyAlways, runsForKey, "3s")
		s.create(pod)
		time.Sleep(time.Minute)
		if status, ok := store.GetPodStatus(pod.UID); !ok || status.ContainerStatuses[0].RestartCount == 0 {
			t.Errorf("got status %+v, want a pod that was run and restarted", status)
		}
		if got := a.count.Load(); got > 0 {
			t.Errorf("the framework asked for a status %d times, want never", got)
		}
		if got := s.takeWrites(); len(got) > 0 {
			t.Errorf("the framework wrote %+v", got)
		}

		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		mine.Shutdown()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestKilled is virtual-kubelet/virtual-kubelet#762: the process is killed before the
// server has taken a status. The next process sends each pod's newest one, and only that.
func TestKilled(t *testing.T) {
	tests := []struct {
		name   string
		outage func(*server)
		back   func(*server)
	}{
		{"server away", (*server).leave, (*server).comeBack},
		{"no answer", func(s *server) { s.setSilent(true) }, func(s *server) { s.setSilent(false) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				first := startProcess(t, s, t.TempDir())
				time.Sleep(start)
				done := newPod("done", v1.RestartPolicyNever, runsForKey, "30s", exitCodeKey, "3")
				again := newPod("again", v1.RestartPolicyAlways, runsForKey, "2s")
				s.create(done, again)
				time.Sleep(start)
				tt.outage(s)
				s.takeWrites()
				time.Sleep(time.Minute)
				synctest.Wait()
				crashed := copyJournal(t, first.dataDir)
				stored := readJournal(t, crashed)
				first.stop()
				for uid, e := range stored {
					if said := fmt.Sprintf(" %s version=%d ", uid, e.Version+1); strings.Contains(first.out.String(), said) {
						t.Errorf("%q was reported, the journal ends with version %d", said, e.Version)
					}
				}
				if writes := s.takeWrites(); len(writes) > 0 {
					t.Fatalf("the server took %+v, so nothing is shown", writes)
				}
				lives := stored[again.UID].Status.ContainerStatuses[0].RestartCount
				if told := s.get("again").Status.ContainerStatuses[0].RestartCount; lives < told+5 {
					t.Fatalf("%d restarts are stored, the server knows of %d, so nothing is shown", lives, told)
				}

				tt.back(s)
				second := startProcess(t, s, crashed)
				time.Sleep(time.Minute)
				second.stop()
				ends := 0
				for _, w := range s.takeWrites() {
					c := w.status.ContainerStatuses[0]
					switch {
					case w.agent != storeAgent:
						t.Errorf("%s wrote %s", w.agent, w.name)
					case w.name == "again" && c.RestartCount < lives:
						t.Errorf("again: the server was sent restart %d, and %d was stored", c.RestartCount, lives)
					case w.name == "done":
						ends++
						if c.State.Terminated == nil || c.State.Terminated.ExitCode != 3 {
							t.Errorf("done: the server was sent %+v, want exit code 3", c.State)
						}
					}
				}
				if ends != 1 {
					t.Errorf("done: its end was sent %d times, want once", ends)
				}
				if got := s.get("again").Status.ContainerStatuses[0].RestartCount; got <= lives {
					t.Errorf("again: got %d restarts, want more than the %d of before", got, lives)
				}
				for _, pod := range []*v1.Pod{done, again} {
					if got := strings.Count(first.out.String()+second.out.String(), " "+string(pod.UID)+" version=1 "); got != 1 {
						t.Errorf("%s was created %d times, want once", pod.Name, got)
					}
				}
			})
		})
	}
}
