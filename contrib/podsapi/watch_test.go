// SPDX-License-Identifier: Apache-2.0

package podsapi_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/statusstore/statusstore/contrib/podsapi"
	"github.com/statusstore/statusstore/journal"
)

func TestWatchPods(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	w.set(t, pod("b"), "first")
	w.set(t, pod("a"), "first")

	s := watch(t, w.client)
	s.want(t, `ADDED uid-a "first"`, `ADDED uid-b "first"`, "INITIAL_SYNC_COMPLETE")
	w.set(t, pod("b"), "second")
	s.want(t, `MODIFIED uid-b "second"`)
	w.set(t, pod("b"), "second") // no change, no event
	w.set(t, pod("c"), "new")
	s.want(t, `ADDED uid-c "new"`)
	w.remove(t, "uid-a")
	kind, gone := s.next(t)
	if got, want := line(kind, gone), `DELETED uid-a ""`; got != want {
		t.Errorf("got event %s, want %s", got, want)
	}
	if gone.Namespace != "default" || gone.Name != "a" {
		t.Errorf("deleted pod: got %s/%s, want default/a", gone.Namespace, gone.Name)
	}
	w.set(t, pod("a"), "back")
	s.want(t, `ADDED uid-a "back"`)

	// The second client gets what is there now.
	watch(t, w.dial(t)).want(t, `ADDED uid-a "back"`, `ADDED uid-b "second"`, `ADDED uid-c "new"`, "INITIAL_SYNC_COMPLETE")
}

// TestWatchPods_SlowReader leaves a watch unread while pods change far beyond what
// any buffer holds. Writers and another watcher go on; the slow one learns the newest
// state when it reads, removals included.
func TestWatchPods_SlowReader(t *testing.T) {
	const (
		pods    = 4
		changes = 200
		volume  = 16 << 10 // bytes per status: 12 MB in all
		extra   = 1200     // more pods that come and go than a watcher keeps a note of
	)
	w := newWorld(t, podsapi.Options{})
	w.set(t, pod("gone"), "soon removed")
	slow, fast := watch(t, w.client), watch(t, w.dial(t))
	for _, s := range []stream{slow, fast} {
		s.want(t, `ADDED uid-gone "soon removed"`, "INITIAL_SYNC_COMPLETE")
	}
	text := strings.Repeat("x", volume)
	last := fmt.Sprint(changes-1, " ", text)

	fastDone := make(chan error, 1)
	go func() {
		_, err := follow(fast, pods, last)
		fastDone <- err
	}()
	inParallel(t, pods, func(p int) error {
		for i := range changes {
			if _, err := w.SetPodStatus(t.Context(), pod(fmt.Sprint(p)), running(fmt.Sprint(i, " ", text))); err != nil {
				return err
			}
		}
		return nil
	})
	w.remove(t, "uid-gone")
	if err := <-fastDone; err != nil {
		t.Fatalf("the fast reader, beside a slow one: %v", err)
	}
	inParallel(t, 32, func(worker int) error {
		for i := worker; i < extra; i += 32 {
			p := pod(fmt.Sprint("extra", i))
			if _, err := w.SetPodStatus(t.Context(), p, running(text)); err != nil {
				return err
			}
			if err := w.Remove(t.Context(), p.UID, journal.ReasonOrphaned); err != nil {
				return err
			}
		}
		return nil
	})

	events, err := follow(slow, pods, last)
	if err != nil {
		t.Fatalf("the slow reader: %v", err)
	}
	t.Logf("the slow reader got %d events for %d versions", events, pods*changes+2*extra)
	if events >= pods*changes {
		t.Errorf("the slow reader got %d events, so nothing was told as one", events)
	}
}

// follow reads until a client that knew the pod "gone" knows the pods 0, 1, … with this
// message and no other, and returns how many events that took.
func follow(s stream, pods int, message string) (events int, err error) {
	known := map[types.UID]string{"uid-gone": "soon removed"}
	for !upToDate(known, pods, message) {
		e, err := s.Recv()
		if err != nil {
			return events, fmt.Errorf("after %d events, %d pods known: %w", events, len(known), err)
		}
		events++
		p := new(v1.Pod)
		if err := p.Unmarshal(e.Pod); err != nil {
			return events, err
		}
		if _, ok := known[p.UID]; ok == (e.Type == podsv1alpha1.EventType_ADDED) {
			return events, fmt.Errorf("got %s of %s, which the client knows: %v", e.Type, p.UID, ok)
		}
		if e.Type == podsv1alpha1.EventType_DELETED {
			delete(known, p.UID)
			continue
		}
		known[p.UID] = p.Status.Message
	}
	return events, nil
}

// inParallel calls f(0) … f(n-1) at the same time.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var group errgroup.Group
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// upToDate reports whether a client knows the pods 0, 1, … with this message, and
// no other.
func upToDate(known map[types.UID]string, pods int, message string) bool {
	if len(known) != pods {
		return false
	}
	for p := range pods {
		if known[pod(fmt.Sprint(p)).UID] != message {
			return false
		}
	}
	return true
}

func TestWatchPods_Limit(t *testing.T) {
	w := newWorld(t, podsapi.Options{MaxWatches: 1})
	first := watch(t, w.client)
	first.want(t, "INITIAL_SYNC_COMPLETE")
	_, err := watch(t, w.client).Recv()
	if got := status.Code(err); got != codes.ResourceExhausted {
		t.Errorf("second watch: got %v (%v), want %v", got, err, codes.ResourceExhausted)
	}
	w.set(t, pod("a"), "still told")
	first.want(t, `ADDED uid-a "still told"`)
}

// TestWatchPods_Terminal shows an end, which a client waits for, as it is stored.
func TestWatchPods_Terminal(t *testing.T) {
	w := newWorld(t, podsapi.Options{})
	p := pod("a")
	w.set(t, p, "runs")
	s := watch(t, w.client)
	s.want(t, `ADDED uid-a "runs"`, "INITIAL_SYNC_COMPLETE")
	if _, err := w.TerminatePod(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	kind, got := s.next(t)
	if kind != podsv1alpha1.EventType_MODIFIED || got.Status.Phase != v1.PodFailed {
		t.Errorf("got %s with phase %s, want MODIFIED with Failed", kind, got.Status.Phase)
	}
}
