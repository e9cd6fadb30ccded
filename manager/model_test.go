// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// modelPod is what must hold of a pod, whatever happens.
type modelPod struct {
	version  journal.Version // the highest ever seen, removals included
	present  bool
	terminal v1.PodPhase // of this incarnation; empty before the end
	start    time.Time   // of this incarnation
	finished bool        // in this incarnation
}

// machine makes random calls and compares with the model after each.
type machine struct {
	t     *rapid.T
	m     *Manager
	opts  Options
	model map[types.UID]*modelPod
}

func (c *machine) pod(n int) *v1.Pod {
	p := pod(number(n))
	p.Spec.Volumes = []v1.Volume{{Name: "data"}}
	if n%2 == 0 {
		never(p)
	}
	return p
}

func (c *machine) open() {
	m, err := Open(c.opts)
	if err != nil {
		c.t.Fatal(err)
	}
	c.m = m
}

func (c *machine) drawStatus() v1.PodStatus {
	s := status(rapid.SampledFrom([]v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodRunning, v1.PodSucceeded, v1.PodFailed}).Draw(c.t, "phase"))
	for i, name := range []string{"app", "side"} {
		id := []string{appID, sideID}[i]
		switch rapid.IntRange(0, 3).Draw(c.t, name) {
		case 0:
			waiting(name, "ContainerCreating")(&s)
		case 1, 2:
			running(name, id, rapid.Bool().Draw(c.t, "ready"))(&s)
		case 3:
			terminated(name, int32(rapid.IntRange(0, 1).Draw(c.t, "code")), "Ended")(&s)
		}
	}
	condition(v1.PodReady, rapid.SampledFrom([]v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}).Draw(c.t, "Ready"))(&s)
	return s
}

// call makes one random call about one pod and says whether it made a version.
func (c *machine) call(n int) (changed bool, err error) {
	ctx := c.t.Context()
	p := c.pod(n)
	outcome := func(o Outcome, err error) (bool, error) { return o == OutcomeApplied, err }
	change := func(ch Change, err error) (bool, error) { return ch.Changed, err }
	switch rapid.IntRange(0, 11).Draw(c.t, "call") {
	case 0, 1, 2, 3:
		return change(c.m.SetPodStatus(ctx, p, c.drawStatus()))
	case 4:
		return change(c.m.SetPodStatusIf(ctx, p, c.drawStatus(), journal.Version(rapid.IntRange(0, 3).Draw(c.t, "expected"))))
	case 5, 6:
		return outcome(c.m.SetContainerReadiness(ctx, p.UID, rapid.SampledFrom([]string{appID, sideID}).Draw(c.t, "id"), rapid.Bool().Draw(c.t, "ready")))
	case 7:
		return outcome(c.m.SetContainerStartup(ctx, p.UID, appID, rapid.Bool().Draw(c.t, "started")))
	case 8:
		return outcome(c.m.SetPodVolumeHealth(ctx, p.UID, "data", []v1.VolumeHealthCondition{{Status: v1.VolumeHealthDegraded, Reason: rapid.SampledFrom([]string{"A", "B"}).Draw(c.t, "reason")}}))
	case 9:
		return change(c.m.TerminatePod(ctx, p))
	case 10:
		return change(c.m.FinishPod(ctx, p.UID))
	default:
		before, _ := c.m.Entry(p.UID)
		_, err := c.m.SetPodResizePending(ctx, p.UID, v1.PodReasonDeferred, rapid.SampledFrom([]string{"A", "B"}).Draw(c.t, "message"), 1)
		after, _ := c.m.Entry(p.UID)
		return !sameVersion(before, after), err
	}
}

// sameVersion compares entries, acks aside.
func sameVersion(a, b *projection.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Sequence == b.Sequence && a.Finished == b.Finished && a.Status == b.Status
}

// step makes a call and checks what it did.
func (c *machine) step(n int) {
	uid := c.pod(n).UID
	before, _ := c.m.Entry(uid)
	changed, err := c.call(n)
	after, _ := c.m.Entry(uid)
	if err != nil || !changed {
		if !sameVersion(before, after) {
			c.t.Fatalf("%s: changed from %+v to %+v although nothing was stored (%v)", uid, before, after, err)
		}
		return
	}
	model := c.model[uid]
	if after == nil || after.Version != model.version+1 {
		c.t.Fatalf("%s: entry %+v, want version %d", uid, after, model.version+1)
	}
	if !model.present {
		*model = modelPod{version: model.version, present: true, start: after.Status.StartTime.Time}
	}
	model.version++
	c.checkEntry(model, after)
}

func (c *machine) checkEntry(model *modelPod, e *projection.Entry) {
	if !e.Status.StartTime.Time.Equal(model.start) {
		c.t.Fatalf("%s: start time moved from %v to %v", e.UID, model.start, e.Status.StartTime)
	}
	if model.terminal != "" && e.Status.Phase != model.terminal {
		c.t.Fatalf("%s: phase %s after %s", e.UID, e.Status.Phase, model.terminal)
	}
	if podstatus.Terminal(e.Status.Phase) {
		model.terminal = e.Status.Phase
	}
	if model.finished && !e.Finished {
		c.t.Fatalf("%s: not finished any more", e.UID)
	}
	model.finished = e.Finished
	if e.Acked > e.Version {
		c.t.Fatalf("%s: acked %d above version %d", e.UID, e.Acked, e.Version)
	}
}

func (c *machine) ack(n int) {
	if e, ok := c.m.Entry(c.pod(n).UID); ok {
		c.m.ack(journal.Ack{UID: e.UID, LiveUID: e.UID, Version: journal.Version(rapid.Uint64Range(1, uint64(e.Version)).Draw(c.t, "acked"))})
	}
}

func (c *machine) removeOrphans() {
	keep := sets.New[types.UID]("some-mirror")
	for n := range len(c.model) {
		uid := c.pod(n).UID
		if rapid.Bool().Draw(c.t, "keep") {
			keep.Insert(uid)
		}
	}
	removed, err := c.m.RemoveOrphanedStatuses(c.t.Context(), keep)
	if err != nil {
		c.t.Fatal(err)
	}
	for uid, model := range c.model {
		if gone := model.present && !keep.Has(uid); gone != sets.New(removed...).Has(uid) {
			c.t.Fatalf("%s: removed %v, want %v", uid, !gone, gone)
		} else if gone {
			*model = modelPod{version: model.version + 1}
		}
	}
}

// reopen closes and opens the store; what was there must be there again.
func (c *machine) reopen() {
	before := c.state()
	if err := c.m.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.open()
	if diff := cmp.Diff(before, c.state()); diff != "" {
		c.t.Fatalf("reopened differs (-before +after):\n%s", diff)
	}
}

// comparedEntry is an entry as plain values; statuses byte for byte.
type comparedEntry struct {
	Version, Acked journal.Version
	Incarnation    journal.Incarnation
	Finished       bool
	Status         string
	Resize         []v1.PodCondition
}

func (c *machine) state() map[types.UID]comparedEntry {
	all := make(map[types.UID]comparedEntry)
	for _, e := range c.m.Entries() {
		all[e.UID] = c.compared(e)
	}
	return all
}

func (c *machine) compared(e *projection.Entry) comparedEntry {
	encoded, err := podstatus.Encode(e.Status)
	if err != nil {
		c.t.Fatal(err)
	}
	resize := c.m.ResizeConditions(e.UID)
	for i := range resize {
		resize[i].LastProbeTime = metav1.Time{} // probes alone are not journalled
	}
	return comparedEntry{e.Version, e.Acked, e.Incarnation, e.Finished, string(encoded), resize}
}

// check compares the whole with the model and with a replay of the history.
func (c *machine) check() {
	present := 0
	for uid, model := range c.model {
		e, ok := c.m.Entry(uid)
		if ok != model.present {
			c.t.Fatalf("%s: present %v, want %v", uid, ok, model.present)
		}
		if ok {
			present++
			if e.Version != model.version {
				c.t.Fatalf("%s: version %d, want %d", uid, e.Version, model.version)
			}
		}
	}
	replayed, err := projection.At(c.m.Journal().Events(1, 0), projection.Point{})
	if err != nil {
		c.t.Fatal(err)
	}
	if replayed.Len() != present {
		c.t.Fatalf("replay has %d pods, want %d", replayed.Len(), present)
	}
	for _, e := range replayed.Entries() {
		live, _ := c.m.Entry(e.UID)
		want, got := c.compared(live), c.compared(e)
		got.Acked = want.Acked // acks have no history
		if string(e.Aux) != string(live.Aux) {
			c.t.Fatalf("%s: resize slots differ", e.UID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			c.t.Fatalf("%s: replay differs from live (-live +replay):\n%s", e.UID, diff)
		}
	}
}

func TestModel_RandomCallsAndRestarts(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		sub := filepath.Join(dir, fmt.Sprint(runs))
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		c := &machine{t: t, opts: Options{Path: filepath.Join(sub, journal.FileName)}, model: make(map[types.UID]*modelPod)}
		for n := range 3 {
			c.model[c.pod(n).UID] = &modelPod{}
		}
		c.open()
		defer func() {
			if err := c.m.Close(); err != nil {
				t.Error(err)
			}
			os.RemoveAll(sub)
		}()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			n := rapid.IntRange(0, 2).Draw(t, "pod")
			switch rapid.IntRange(0, 15).Draw(t, "step") {
			case 0:
				c.reopen()
			case 1:
				c.removeOrphans()
			case 2:
				c.ack(n)
			default:
				c.step(n)
			}
			c.check()
		}
		c.reopen()
		c.check()
	})
}
