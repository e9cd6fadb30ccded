// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusstore/statusstore/projection"
)

func TestBackoff(t *testing.T) {
	b := backoff{time.Second, 5 * time.Minute}
	for attempt, want := range []time.Duration{1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		want *= time.Second
		if got := b.after(attempt); got < want*9/10 || got > want*11/10 {
			t.Errorf("after %d attempts: %s, want about %s", attempt, got, want)
		}
	}
	if got := b.after(1_000_000); got > 330*time.Second {
		t.Errorf("after a million attempts: %s", got)
	}
}

func TestLanes(t *testing.T) {
	q := newQueue()
	defer q.work.ShutDown()
	for _, uid := range []types.UID{"a", "b", "c", "d"} {
		q.add(uid, laneNormal)
	}
	q.add("x", laneUrgent)
	q.add("c", laneUrgent) // is promoted, not added twice
	q.add("a", laneNormal)
	if got := q.work.Len(); got != 5 {
		t.Fatalf("length %d, want 5", got)
	}
	var got []types.UID
	for range 5 {
		uid, _ := q.work.Get()
		got = append(got, uid)
		q.work.Done(uid)
	}
	if diff := cmp.Diff([]types.UID{"x", "c", "a", "b", "d"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := q.work.Len(); got != 0 {
		t.Errorf("length %d at the end", got)
	}
}

func TestLanes_UrgentOnesStarveNobody(t *testing.T) {
	q := newQueue()
	defer q.work.ShutDown()
	q.add("normal", laneNormal)
	for i := range 100 {
		q.add(types.UID(fmt.Sprint(i)), laneUrgent)
	}
	var got []types.UID
	for range 101 {
		uid, _ := q.work.Get()
		got = append(got, uid)
		q.work.Done(uid)
	}
	if at := slices.Index(got, "normal"); at != maxUrgentInRow {
		t.Errorf("the normal one came at %d, want %d", at, maxUrgentInRow)
	}
}

// TestLanes_AddedWhileWorkedOn: no wake-up is lost, and no two workers have it.
func TestLanes_AddedWhileWorkedOn(t *testing.T) {
	q := newQueue()
	defer q.work.ShutDown()
	q.add("a", laneNormal)
	q.add("b", laneNormal)
	a, _ := q.work.Get()
	q.add(a, laneUrgent)
	b, _ := q.work.Get()
	if b != "b" || q.work.Len() != 0 {
		t.Fatalf("got %s, length %d", b, q.work.Len())
	}
	q.add("b", laneNormal)
	q.work.Done(b)
	q.work.Done(a)
	if next, _ := q.work.Get(); next != "a" {
		t.Errorf("got %s, want the urgent a", next)
	}
}

func TestCircuit(t *testing.T) {
	now := time.Now()
	second := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	t.Run("one or two pods don't open it", func(t *testing.T) {
		c := newCircuit()
		for n := range 10 {
			if c.failure("a", faultSlow, second(n), second(n)) || c.failure("b", faultSick, second(n), second(n)) {
				t.Fatal("open")
			}
		}
	})
	t.Run("three pods do", func(t *testing.T) {
		c := newCircuit()
		c.failure("a", faultSick, now, now)
		c.failure("b", faultSick, now, now)
		if !c.failure("c", faultSlow, now, now) {
			t.Error("closed")
		}
	})
	t.Run("a success in between", func(t *testing.T) {
		c := newCircuit()
		c.failure("a", faultSick, now, now)
		c.failure("b", faultSick, now, now)
		c.success(second(1))
		if c.failure("c", faultSick, second(2), second(2)) {
			t.Error("open")
		}
	})
	t.Run("pods that time out together while others succeed", func(t *testing.T) {
		c := newCircuit()
		c.success(second(5))
		for _, uid := range []types.UID{"a", "b", "c", "d"} {
			if c.failure(uid, faultSlow, now, second(10)) {
				t.Error("open")
			}
		}
	})
	t.Run("no connection at all", func(t *testing.T) {
		c := newCircuit()
		if !c.failure("a", faultDead, now, now) {
			t.Error("closed")
		}
	})
	t.Run("probes and release", func(t *testing.T) {
		c := newCircuit()
		c.failure("bad", faultDead, now, now)
		for _, uid := range []types.UID{"bad", "a", "b", "a"} {
			if c.admit(uid, now) {
				t.Errorf("%s admitted", uid)
			}
		}
		if _, parked := c.state(); parked != 3 {
			t.Errorf("%d parked, want 3", parked)
		}
		if d, ok := c.untilProbe(now); !ok || d < 900*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("next probe in %s, %v", d, ok)
		}
		probe, _ := c.unpark()
		if probe != "a" {
			t.Errorf("probe %s, want a: it didn't fail yet", probe)
		}
		if !c.admit(probe, second(2)) || c.admit("c", second(2)) {
			t.Error("want one admitted")
		}
		c.failure("a", faultDead, second(2), second(2))
		released, _, reopened := c.success(second(3))
		slices.Sort(released)
		if diff := cmp.Diff([]types.UID{"a", "b", "bad", "c"}, released); diff != "" || !reopened {
			t.Errorf("released (-want +got):\n%s", diff)
		}
		if !c.admit("d", second(3)) {
			t.Error("still open")
		}
		if _, ok := c.untilProbe(second(9)); ok {
			t.Error("a probe is due")
		}
	})
}

func TestRepairs(t *testing.T) {
	now := time.Now()
	var r repairs
	if due := r.due(sending{version: 1}, now); due.After(now) {
		t.Error("the first is not due")
	}
	for n := range 20 {
		r.note(sending{version: 1}, now)
		wait := r.due(sending{version: 1}, now).Sub(now)
		if want := min(time.Second<<n, repairMax); wait < want*9/10 || wait > want*11/10 {
			t.Errorf("wait %d is %s, want about %s", n, wait, want)
		}
	}
	for _, s := range []sending{{version: 2}, {version: 1, held: true}} {
		if due := r.due(s, now); due.After(now) {
			t.Errorf("%+v has to wait", s)
		}
	}
	if later := now.Add(2 * repairIdle); r.due(sending{version: 1}, later).After(later) {
		t.Error("it never ends")
	}
}

func TestNewer(t *testing.T) {
	at := func(version string) *v1.Pod {
		pod := newPod("web-0", "uid-a")
		pod.ResourceVersion = version
		return pod
	}
	tests := []struct {
		name     string
		informer *v1.Pod
		recent   answer
		want     string
	}{
		{"no answer", at("5"), answer{}, "5"},
		{"not in the informer", nil, answer{pod: at("5"), lists: 1}, "5"},
		{"informer is behind", at("9"), answer{pod: at("10"), lists: 1}, "10"},
		{"informer is ahead", at("11"), answer{pod: at("10"), lists: 1}, "11"},
		{"not comparable", at("abc"), answer{pod: at("10"), lists: 1}, "abc"},
		{"G5: listed since, version went back", at("9"), answer{pod: at("10"), lists: 0}, "9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, answered := newer(tt.informer, tt.recent, 1)
			if got.ResourceVersion != tt.want || answered != (got == tt.recent.pod) {
				t.Errorf("got %s, answered %v, want %s", got.ResourceVersion, answered, tt.want)
			}
		})
	}
}

func TestTracks_OneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := tracks{pods: make(map[types.UID]*track)}
		if err := table.acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := table.acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire = %v", err)
		}
		got := make(chan error, 1)
		go func() { got <- table.acquire(t.Context(), "a") }()
		synctest.Wait()
		table.prune(func(types.UID) bool { return false }, time.Now())
		table.forget("a")
		table.release("a")
		if err := <-got; err != nil {
			t.Error(err)
		}
		table.release("a")
		table.prune(func(types.UID) bool { return false }, time.Now())
		if n := len(table.pods); n != 0 {
			t.Errorf("%d tracks left", n)
		}
	})
}

func TestOptions(t *testing.T) {
	good := Options{
		Client: fake.NewClientset(), Live: NewLivePods(fake.NewClientset(), node, LiveOptions{}),
		Entries: newMemory(), Acks: newMemory(), Drops: newMemory(),
	}
	s, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	if s.o.Workers != 10 || s.o.PassInterval != 10*time.Second || s.o.RequestTimeout != 10*time.Second || s.o.RetryMax != 5*time.Minute {
		t.Errorf("defaults: %+v", s.o)
	}
	for name, spoil := range map[string]func(*Options){
		"no client":      func(o *Options) { o.Client = nil },
		"no live pods":   func(o *Options) { o.Live = nil },
		"no entries":     func(o *Options) { o.Entries = nil },
		"no acks":        func(o *Options) { o.Acks = nil },
		"no dropper":     func(o *Options) { o.Drops = nil },
		"many workers":   func(o *Options) { o.Workers = maxWorkers + 1 },
		"negative pass":  func(o *Options) { o.PassInterval = -1 },
		"negative retry": func(o *Options) { o.RetryBase = -1 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRun_Once(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.pause(time.Second)
		if err := w.Syncer.Run(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run = %v", err)
		}
		if err := w.live.Run(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run of LivePods = %v", err)
		}
		if err := w.live.Refresh(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("Refresh = %v", err)
		}
	})
}

// TestFakeClientset: an embedding program's tests may use client-go's fake.
func TestFakeClientset(t *testing.T) {
	pod := newPod("web-0", "uid-a")
	client := fake.NewClientset(pod)
	m := newMemory()
	m.set(pod, running(1))
	s, err := New(Options{Client: client, Live: NewLivePods(client, node, LiveOptions{}), Entries: m, Acks: m, Drops: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SyncOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e, _ := m.Get("uid-a"); e.Pending() {
		t.Errorf("pending after SyncOnce: %+v", s.Failing())
	}
}

// BenchmarkPass is what a pass over 10,000 pods costs when nothing changed.
func BenchmarkPass(b *testing.B) {
	m := newMemory()
	live := NewLivePods(fake.NewClientset(), "", LiveOptions{})
	s, err := New(Options{Client: fake.NewClientset(), Live: live, Entries: m, Acks: m, Drops: m})
	if err != nil {
		b.Fatal(err)
	}
	var items []any
	many(10_000, func(i int, pod *v1.Pod) {
		pod.ResourceVersion, pod.Status = fmt.Sprint(i+1), running(1)
		items = append(items, pod)
		m.set(pod, running(1))
		m.Ack(pod.UID, pod.UID, 1)
	})
	if err := (liveStore{live}).Replace(items, "1"); err != nil {
		b.Fatal(err)
	}
	q := newQueue()
	defer q.work.ShutDown()
	for _, e := range m.List() {
		s.process(b.Context(), e.UID)
	}
	s.queue.Store(q)
	entries := m.List()
	s.o.Entries = frozen{m, entries}
	for b.Loop() {
		s.pass()
	}
	if n := q.work.Len(); n != 0 {
		b.Errorf("%d of 10,000 settled pods are queued", n)
	}
}

// frozen spares the benchmark sorting entries.
type frozen struct {
	*memory
	list []*projection.Entry
}

func (f frozen) List() []*projection.Entry { return f.list }
