// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

func TestSemantics56_Notifications(t *testing.T) {
	var got []string
	s := open(t, func(o *Options) {
		o.Hooks.Notify = func(n Notification) {
			added := ""
			if n.Added {
				added = " added"
			}
			got = append(got, fmt.Sprintf("%s %s/%s %d%s %s", n.Kind, n.Namespace, n.Name, n.Version, added, n.Status().Phase))
			n.Status().Phase = "edited by the receiver"
		}
	})
	p := pod(never)
	s.set(p, runningReady())
	if _, err := s.SetPodStatus(t.Context(), p, runningReady()); err != nil { // unchanged
		t.Fatal(err)
	}
	if _, err := s.SetPodResizePending(t.Context(), "uid-a", v1.PodReasonDeferred, "", 1); err != nil { // not the status
		t.Fatal(err)
	}
	s.wantReadiness("uid-a", appID, false, OutcomeApplied, nil)
	if _, err := s.TerminatePod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.set(p, func() v1.PodStatus { st := *s.stored("uid-a"); st.Message = "late"; return st }())
	if _, err := s.SetPodStatus(t.Context(), p, runningReady()); err == nil { // refused
		t.Error("running again was accepted")
	}
	s.set(pod(number(1), deleted), runningReady())
	s.set(pod(number(2)), runningReady())
	if _, err := s.FinishPod(t.Context(), "uid-2"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"updated default/web-0 1 added Running",
		"updated default/web-0 3 Running",
		"removed default/web-0 4 Failed",
		"removed default/web-0 5 Failed",
		"updated default/web-1 1 Running",
		"updated default/web-2 1 added Running",
		"removed default/web-2 2 Running",
	}
	if !slices.Equal(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := s.stored("uid-a").Phase; got != v1.PodFailed {
		t.Errorf("phase %q: the receiver changed what is stored", got)
	}
}

// TestF12_NotificationsInOrder: per pod, versions are told in order and only what
// is stored already, whoever called.
func TestF12_NotificationsInOrder(t *testing.T) {
	var s *store
	var mu sync.Mutex
	last := make(map[types.UID]journal.Version)
	s = open(t, func(o *Options) {
		o.Hooks.Notify = func(n Notification) {
			mu.Lock()
			defer mu.Unlock()
			if n.Version <= last[n.UID] {
				t.Errorf("%s: version %d told after %d", n.UID, n.Version, last[n.UID])
			}
			last[n.UID] = n.Version
			if e, ok := s.Entry(n.UID); !ok || e.Version < n.Version {
				t.Errorf("%s: version %d told before it can be read", n.UID, n.Version)
			}
		}
	})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				p := pod(number(i % 2))
				if _, err := s.SetPodStatus(t.Context(), p, runningReady(text(fmt.Sprint(w, "-", i)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	for _, e := range s.Entries() {
		if last[e.UID] != e.Version {
			t.Errorf("%s: told up to %d, version is %d", e.UID, last[e.UID], e.Version)
		}
	}
}

func TestHooks_Committed(t *testing.T) {
	var got []int
	s := open(t, func(o *Options) { o.Hooks.Committed = func(events int) { got = append(got, events) } })
	for i := range 3 {
		s.set(pod(number(i)), runningReady())
	}
	if _, err := s.RemoveOrphanedStatuses(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 1, 1, 1, 3}; !slices.Equal(got, want) { // the opening is the first
		t.Errorf("commits of %v events, want %v", got, want)
	}
}

func TestHooks_MayCallTheManager(t *testing.T) {
	var s *store
	var versions []journal.Version
	s = open(t, func(o *Options) {
		o.Hooks.Notify = func(n Notification) {
			versions = append(versions, n.Version)
			if n.Version < 4 {
				s.set(pod(), runningReady(text(fmt.Sprint("after ", n.Version))))
			}
		}
	})
	s.set(pod(), runningReady())
	if want := []journal.Version{1, 2, 3, 4}; !slices.Equal(versions, want) {
		t.Errorf("told %v, want %v", versions, want)
	}
}

func TestHooks_APanicDoesNotSilenceTheRest(t *testing.T) {
	var told int
	s := open(t, func(o *Options) {
		o.Hooks.Notify = func(n Notification) {
			told++
			if told == 1 {
				panic("receiver")
			}
		}
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		// Without a way to end, the call runs on this goroutine.
		s.SetPodStatus(contextWithoutEnd, pod(), runningReady())
	}()
	s.set(pod(), runningReady(text("next")))
	if told != 2 {
		t.Errorf("told %d times, want 2", told)
	}
}

// TestNotifier_SlowReceiver: what waits is bounded and nothing that was added or
// removed is missed.
func TestNotifier_SlowReceiver(t *testing.T) {
	var got []string
	n := &notifier{}
	n.deliver = func(note Notification) {
		got = append(got, fmt.Sprintf("%s %s %d %v", note.Kind, note.UID, note.Version, note.Added))
	}
	for v := range journal.Version(100) {
		n.enqueue(Notification{Kind: NotifyUpdated, UID: "a", Version: v + 1, Added: v == 0})
	}
	n.enqueue(Notification{Kind: NotifyUpdated, UID: "b", Version: 1})
	n.enqueue(Notification{Kind: NotifyRemoved, UID: "a", Version: 101})
	n.enqueue(Notification{Kind: NotifyRemoved, UID: "a", Version: 102})
	if len(n.queue) != 3 {
		t.Errorf("%d wait, want 3", len(n.queue))
	}
	n.drain()
	want := []string{"updated a 100 true", "updated b 1 false", "removed a 102 false"}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if len(n.queue)+len(n.last) != 0 {
		t.Error("something is left")
	}
}

// TestSemantics53_TerminatedContainersAreCountedOnce, and not again by replay.
func TestSemantics53_TerminatedContainersAreCountedOnce(t *testing.T) {
	var got []string
	s := open(t, func(o *Options) {
		o.Hooks.ContainerTerminated = func(uid types.UID, c podstatus.Termination) {
			got = append(got, fmt.Sprintf("%s %s %s %d %s", uid, c.Kind, c.Container, c.ExitCode, c.Reason))
		}
	})
	s.set(pod(never), runningReady())
	ended := runningReady(terminated("app", 3, "Error"))
	s.set(pod(never), ended)
	s.set(pod(never), func() v1.PodStatus { e := *ended.DeepCopy(); e.Message = "m"; return e }())
	s.reopen()
	s.set(pod(never), ended)
	if _, err := s.TerminatePod(t.Context(), pod(never)); err != nil {
		t.Fatal(err)
	}
	want := []string{"uid-a container app 3 Error", "uid-a container side 137 ContainerStatusUnknown"}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
