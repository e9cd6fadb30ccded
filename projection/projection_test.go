// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

func TestLoad_OneBadRecordHidesNoOther(t *testing.T) {
	p := New()
	err := p.Load(history(set("a", 9, 3, "a3"), journal.Event{Sequence: 10}, garbled(set("b", 11, 1, "")), set("c", 7, 2, "c2")),
		map[types.UID]journal.Ack{"a": {UID: "a", LiveUID: "a", Version: 7}, "gone": {UID: "gone", Version: 1}})
	if !errors.Is(err, journal.ErrCorrupt) || !errors.Is(err, podstatus.ErrMalformed) {
		t.Errorf("error %v, want both what the journal and what the fold found", err)
	}
	wantMessages(t, p.List(), "a:a3", "c:c2")
	if e, _ := p.Get("a"); e.Acked != 3 || e.Pending() {
		t.Errorf("acked %d, want it clamped to 3", e.Acked)
	}
	if got, want := p.Counts(), (Counts{Pods: 2, Pending: 1, AckedVersionsBehind: 2}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if p.Head() != 11 || p.Len() != 2 {
		t.Errorf("head %d, %d pods; want 11, 2", p.Head(), p.Len())
	}
}

func TestLoad_CommitsMeanwhileWin(t *testing.T) {
	p := New()
	p.Commit([]journal.Event{set("a", 9, 3, "newer")})
	if err := p.Load(history(set("a", 5, 2, "older")), nil); err != nil {
		t.Fatal(err)
	}
	wantMessages(t, p.List(), "a:newer")
}

func TestCommit_ReportsWhatItCannotFold(t *testing.T) {
	p := New()
	p.Commit([]journal.Event{set("a", 1, 1, "a1"), garbled(set("a", 2, 2, "")), set("b", 3, 1, "b1")})
	wantMessages(t, p.List(), "a:a1", "b:b1")
	if e, ok := errors.AsType[*EventError](p.Err()); !ok || e.Sequence != 2 {
		t.Errorf("error %v, want an EventError about 2", p.Err())
	}
}

func TestCommit_LeavesTheCallersEvents(t *testing.T) {
	events := []journal.Event{set("a", 1, 1, "a1")}
	New().Commit(events)
	if events[0].Payload != nil {
		t.Error("the caller's slice was changed")
	}
}

func TestWatch(t *testing.T) {
	p := New()
	w := p.Watch()
	woken := func() bool {
		select {
		case <-w.C:
			return true
		default:
			return false
		}
	}
	if woken() || w.Take() != nil {
		t.Error("a new watcher has something")
	}
	p.Commit([]journal.Event{set("a", 1, 1, ""), set("a", 2, 2, ""), set("b", 3, 1, ""), event(journal.KindOpened, "", 4, 0, ""), event(journal.KindRejected, "c", 5, 0, "")})
	p.SetAck(journal.Ack{UID: "a", LiveUID: "a", Version: 2})
	if !woken() || woken() {
		t.Error("want one wake-up")
	}
	got := w.Take()
	slices.Sort(got)
	if want := []types.UID{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("took %q, want %q", got, want)
	}
	if w.Take() != nil {
		t.Error("taken twice")
	}
	p.Commit([]journal.Event{event(journal.KindRemoved, "a", 6, 3, "")})
	if got := w.Take(); !slices.Equal(got, []types.UID{"a"}) {
		t.Errorf("took %q, want the removed pod", got)
	}
	w.Stop()
	w.Stop()
	p.Commit([]journal.Event{set("b", 7, 2, "")})
	if w.Take() != nil {
		t.Error("a stopped watcher has something")
	}
}

func TestWatch_IsBoundedByPods(t *testing.T) {
	p := New()
	w := p.Watch()
	p.Commit([]journal.Event{set("stays", 1, 1, "")})
	seq := journal.Sequence(2)
	for i := range 5 * slack {
		uid := types.UID(fmt.Sprint("short-", i))
		p.Commit([]journal.Event{set(uid, seq, 1, ""), event(journal.KindRemoved, uid, seq+1, 2, "")})
		seq += 2
	}
	got := w.Take()
	if len(got) > slack+4 {
		t.Errorf("%d UIDs wait, want at most %d", len(got), slack+4)
	}
	if !slices.Contains(got, "stays") {
		t.Error("a pod that is there was forgotten")
	}
}

func TestProjection_ConcurrentUse(t *testing.T) {
	p := New()
	w := p.Watch()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				for _, e := range p.List() {
					if e.Acked > e.Version {
						t.Errorf("acked %d above version %d", e.Acked, e.Version)
					}
				}
				p.Get("a")
				p.ByName("default", "pod-a")
				p.SetAck(journal.Ack{UID: "a", LiveUID: "a", Version: 1000})
				p.ClearAck("a")
				w.Take()
			}
		})
	}
	for i := range 500 {
		p.Commit([]journal.Event{set("a", journal.Sequence(i+1), journal.Version(i+1), "")})
	}
	wg.Wait()
}

// step is a commit of events or one ack.
type step struct {
	events []journal.Event
	ack    *journal.Ack
}

// drawSteps draws a history as a journal would tell it.
func drawSteps(t *rapid.T) []step {
	type pod struct {
		version     journal.Version
		incarnation journal.Incarnation
		present     bool
		finished    bool
	}
	pods := map[types.UID]*pod{"a": {}, "b": {}, "c": {}}
	uids := rapid.SampledFrom([]types.UID{"a", "b", "c"})
	var seq journal.Sequence
	var steps []step
	for range rapid.IntRange(0, 40).Draw(t, "steps") {
		if rapid.IntRange(0, 3).Draw(t, "ack?") == 0 {
			steps = append(steps, step{ack: &journal.Ack{
				UID: uids.Draw(t, "uid"), LiveUID: rapid.SampledFrom([]types.UID{"l", "m"}).Draw(t, "live"),
				Version: journal.Version(rapid.IntRange(0, 20).Draw(t, "version")), Time: at(int(seq)),
			}})
			continue
		}
		var s step
		for range rapid.IntRange(1, 4).Draw(t, "events") {
			uid := uids.Draw(t, "uid")
			p := pods[uid]
			kind := rapid.SampledFrom([]journal.Kind{
				journal.KindSet, journal.KindSet, journal.KindFinished, journal.KindRemoved, journal.KindRejected, journal.Kind(99),
			}).Draw(t, "kind")
			if kind == journal.KindRemoved && !p.present {
				kind = journal.KindSet
			}
			seq++
			switch kind {
			case journal.KindSet, journal.KindFinished:
				if !p.present {
					p.incarnation, p.finished = p.incarnation+1, false
				}
				p.present, p.version = true, p.version+1
				p.finished = p.finished || kind == journal.KindFinished
			case journal.KindRemoved:
				p.present, p.version = false, p.version+1
			}
			e := event(kind, uid, seq, p.version, fmt.Sprint("message ", seq))
			e.Incarnation, e.Finished = p.incarnation, p.finished
			if rapid.Bool().Draw(t, "payload?") && e.Status != nil {
				e.Payload = &v1.PodStatus{Phase: v1.PodRunning, Message: fmt.Sprint("message ", seq)}
			}
			s.events = append(s.events, e)
		}
		steps = append(steps, s)
	}
	return steps
}

// TestProperty_LiveEqualsReplay: whatever happens, the live projection, a replay
// of all events, a load of the newest ones and the state at the end are the same.
func TestProperty_LiveEqualsReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, replay := New(), NewState()
		newest := make(map[types.UID]journal.Event)
		var all []journal.Event
		versions := make(map[types.UID]journal.Version)
		for _, s := range drawSteps(t) {
			if s.ack != nil {
				live.SetAck(*s.ack)
				replay.ApplyAck(*s.ack)
			}
			live.Commit(s.events)
			for _, e := range s.events {
				e.Payload = nil // as the journal gives it back
				if err := replay.Apply(e); err != nil {
					t.Fatalf("apply %d: %v", e.Sequence, err)
				}
				all = append(all, e)
				if changesPod(e.Kind) {
					newest[e.UID] = e
				}
			}
			for _, e := range live.List() {
				if e.Acked > e.Version {
					t.Fatalf("%s: acked %d above version %d", e.UID, e.Acked, e.Version)
				}
				if e.Version < versions[e.UID] {
					t.Fatalf("%s: version %d after %d", e.UID, e.Version, versions[e.UID])
				}
				versions[e.UID] = e.Version
				if e.Pending() == e.PendingSince.IsZero() {
					t.Fatalf("%s: pending %v since %v", e.UID, e.Pending(), e.PendingSince)
				}
			}
		}
		if err := live.Err(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(replay.Entries(), live.List()); diff != "" {
			t.Fatalf("live differs from replay (-replay +live):\n%s", diff)
		}
		if live.Counts() != replay.Counts() || live.Counts() != recount(live.List()) {
			t.Fatalf("counts %+v, replay %+v, counted %+v", live.Counts(), replay.Counts(), recount(live.List()))
		}
		acks := make(map[types.UID]journal.Ack)
		for _, e := range live.List() {
			if e.Acked > 0 {
				acks[e.UID] = journal.Ack{UID: e.UID, LiveUID: e.AckedUID, Version: e.Acked}
			}
		}
		loaded := New()
		if err := loaded.Load(history(eventsOf(newest)...), acks); err != nil {
			t.Fatal(err)
		}
		// What is not in the newest event: how long a pod is pending, and an ack of
		// version 0, which says no more than none.
		plain := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".PendingSince" }, cmp.Ignore())
		noAck := cmp.Transformer("noAck", func(e *Entry) Entry {
			c := *e
			if c.Acked == 0 {
				c.AckedUID = ""
			}
			return c
		})
		if diff := cmp.Diff(live.List(), loaded.List(), plain, noAck); diff != "" {
			t.Fatalf("loaded differs from live (-live +loaded):\n%s", diff)
		}
		then, err := At(history(all...), Point{})
		if err != nil {
			t.Fatal(err)
		}
		ignoreAcks := cmp.FilterPath(func(p cmp.Path) bool {
			last := p.Last().String()
			return last == ".Acked" || last == ".AckedUID" || last == ".PendingSince"
		}, cmp.Ignore())
		if diff := cmp.Diff(live.List(), then.Entries(), ignoreAcks); diff != "" {
			t.Fatalf("the state at the end differs from live (-live +at):\n%s", diff)
		}
	})
}

func eventsOf(m map[types.UID]journal.Event) []journal.Event {
	var out []journal.Event
	for _, e := range m {
		out = append(out, e)
	}
	return out
}

func recount(entries []*Entry) Counts {
	var c Counts
	for _, e := range entries {
		c.add(e)
	}
	return c
}

func BenchmarkGet(b *testing.B) {
	p := New()
	for i := range 500 {
		p.Commit([]journal.Event{set(types.UID(fmt.Sprint(i)), journal.Sequence(i+1), 1, "")})
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.Get("250")
		}
	})
}
