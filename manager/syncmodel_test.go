// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// syncedMachine is a machine whose store syncs with an API server meanwhile.
type syncedMachine struct {
	*machine
	api     *fakeapi.Server
	stop    func()
	patched map[types.UID]int // accepted PATCHes so far
	foreign int               // changes made elsewhere
	down    bool
	cuts    int // times that a request may have been cut off: its outcome is not known
	// crossed counts what others did to conditions of ours: a PATCH that crosses such
	// a change may find done what it asks for.
	crossed int
	// everCut says that a request may have been overtaken: one that was cut off may
	// reach the server after those that came later.
	everCut bool
}

func (c *syncedMachine) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	m := c.m
	go func() { done <- m.Run(ctx) }()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("run: %v", err)
		}
	}
}

func (c *syncedMachine) cut() { c.cuts, c.everCut = c.cuts+1, true }

func (c *syncedMachine) restart() {
	c.cut()
	c.stop()
	c.reopen()
	c.run()
}

// elsewhere is what others do to a pod on the server.
func (c *syncedMachine) elsewhere(n int) {
	c.foreign++
	what := rapid.IntRange(0, 2).Draw(c.t, "elsewhere")
	err := c.api.Mutate("default", c.pod(n).Name, func(p *v1.Pod) {
		s := &p.Status
		switch what {
		case 0: // a condition of their own
			if i, _ := podstatus.FindCondition(s, "example.com/theirs"); i >= 0 {
				s.Conditions[i].Message = fmt.Sprint(c.foreign)
				return
			}
			s.Conditions = append(s.Conditions, v1.PodCondition{Type: "example.com/theirs", Status: v1.ConditionTrue})
		case 1: // one of ours
			c.crossed++
			for i := range s.Conditions {
				if s.Conditions[i].Type == v1.PodReady {
					s.Conditions[i].Status, s.Conditions[i].Reason = v1.ConditionFalse, fmt.Sprint("Theirs", c.foreign)
				}
			}
		case 2: // nothing that counts
			p.Labels = map[string]string{"n": fmt.Sprint(c.foreign)}
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// checkSent looks at what the server was sent when all is quiet: no PATCH without
// effect or that it refuses, unless it repeats one that was cut off or crosses
// another's change, and no phase after a terminal one.
func (c *syncedMachine) checkSent() {
	for n := range len(c.model) {
		uid := c.pod(n).UID
		history := c.api.StatusHistory(uid)
		sent := c.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}, Name: c.pod(n).Name})
		if changed := len(history) - c.patched[uid]; len(sent) > changed+c.cuts+c.crossed {
			c.t.Fatalf("%s: %d PATCHes, %d of them changed anything; at most %d were cut off and %d crossed another's:%s",
				uid, len(sent), changed, c.cuts, c.crossed, lines(sent))
		}
		var end v1.PodPhase
		for _, h := range history {
			if end != "" && h.Status.Phase != end && !c.everCut {
				c.t.Fatalf("%s: the server got phase %s after %s:%s", uid, h.Status.Phase, end, lines(sent))
			}
			if podstatus.Terminal(h.Status.Phase) {
				end = h.Status.Phase
			}
		}
	}
}

func lines(requests []fakeapi.Request) string {
	var all strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&all, "\n%v %d %s", r.At, r.Code, r.Body)
	}
	return all.String()
}

// forget starts counting anew.
func (c *syncedMachine) forget() {
	c.checkSent()
	c.api.ResetRequests()
	c.cuts, c.crossed = 0, 0
	for n := range len(c.model) {
		uid := c.pod(n).UID
		c.patched[uid] = len(c.api.StatusHistory(uid))
	}
}

// again sets each pod's own status and reports whether that made a version.
func (c *syncedMachine) again() (changed bool) {
	for n := range len(c.model) {
		p := c.pod(n)
		e, ok := c.m.Entry(p.UID)
		if !ok {
			continue
		}
		change, err := c.m.SetPodStatus(c.t.Context(), p, *e.Status.DeepCopy())
		if err != nil {
			c.t.Fatalf("%s: its own status again: %v", p.UID, err)
		}
		if change.Changed {
			c.model[p.UID].version++
			changed = true
		}
	}
	return changed
}

// settle waits until all that can be sent is sent, and then wants silence, whatever
// passes, repetitions and restarts there are.
func (c *syncedMachine) settle() {
	c.again() // TerminatePod alone leaves the generation as it was
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	for n := range len(c.model) {
		if e, ok := c.m.Entry(c.pod(n).UID); ok && e.Pending() {
			c.t.Fatalf("%s: still not acked: %+v; %+v", e.UID, e, c.m.Failing()[e.UID])
		}
	}
	c.forget()
	if c.again() {
		c.t.Fatal("the same status again made a version")
	}
	for range 2 {
		time.Sleep(35 * time.Second)
		c.restart()
	}
	time.Sleep(35 * time.Second)
	synctest.Wait()
	for _, r := range c.api.Requests(fakeapi.Match{}) {
		if r.Verb != fakeapi.List && r.Verb != fakeapi.Watch {
			c.t.Fatalf("nothing has changed, and the server gets %s %s: %s", r.Method, r.Path, r.Body)
		}
	}
}

// bubble runs properties, each in a bubble of its own.
type bubble struct {
	t      *testing.T
	failed any // why the first property that failed did
}

// newBubble returns one that repeats at the end of the test why it failed: what
// rapid writes is long, and a reader of logs often has only the last lines.
func newBubble(t *testing.T) *bubble {
	b := &bubble{t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("failed: %.2000v", b.failed)
		}
	})
	return b
}

// run runs a property and passes on the panics by which rapid ends it.
func (b *bubble) run(property func()) {
	b.t.Helper()
	var failed any
	synctest.Test(b.t, func(*testing.T) {
		defer func() { failed = recover() }()
		property()
	})
	if failed == nil {
		return
	}
	// When rapid looks for a shorter story, it takes two failures for the same if
	// they come from the same line; one that ran out of data is none.
	if fmt.Sprintf("%T", failed) == "rapid.invalidData" {
		panic(failed)
	}
	if b.failed == nil {
		b.failed = failed
	}
	panic(failed)
}

// network cuts or restores the way to the server.
func (c *syncedMachine) network(up bool) {
	if c.down == !up {
		return
	}
	if c.down = !up; c.down {
		c.cut()
		c.api.NetworkDown()
	} else if err := c.api.NetworkUp(); err != nil {
		c.t.Fatal(err)
	}
}

// story is one random sequence.
func (c *syncedMachine) story() {
	for n := range 2 {
		p := c.pod(n)
		c.model[p.UID] = &modelPod{}
		p.Spec.NodeName = node
		if _, err := c.api.Put(p); err != nil {
			c.t.Fatal(err)
		}
	}
	c.open()
	c.run()
	defer func() {
		c.stop()
		if err := c.m.Close(); err != nil {
			c.t.Error(err)
		}
	}()
	for range rapid.IntRange(1, 25).Draw(c.t, "steps") {
		n := rapid.IntRange(0, 1).Draw(c.t, "pod")
		switch rapid.IntRange(0, 19).Draw(c.t, "step") {
		case 0:
			c.restart()
		case 1:
			c.removeOrphans()
		case 2:
			c.network(c.down)
		case 3, 4:
			c.elsewhere(n)
		case 5, 6, 7:
			time.Sleep(time.Duration(rapid.IntRange(0, 15_000).Draw(c.t, "milliseconds")) * time.Millisecond)
		default:
			c.step(n)
		}
		c.check()
	}
	c.network(true)
	c.settle()
	c.check()
}

// TestModel_RandomCallsWithAServer: random calls, outages, restarts and other
// writers; what the server is sent must make sense, and end.
func TestModel_RandomCallsWithAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), journal.FileName)
	bubble := newBubble(t)
	rapid.Check(t, func(r *rapid.T) {
		r.Context().Done() // rapid closes it, so it must not belong to the bubble
		bubble.run(func() {
			defer os.Remove(path + journal.MarkSuffix)
			defer os.Remove(path)
			api, err := fakeapi.ListenInMemory(fakeapi.Options{VolumeHealth: true})
			if err != nil {
				r.Fatal(err)
			}
			defer api.Close()
			client, err := kubernetes.NewForConfig(api.RESTConfig())
			if err != nil {
				r.Fatal(err)
			}
			c := &syncedMachine{
				machine: &machine{
					t: r, opts: Options{Path: path, Client: client, Node: node}, model: make(map[types.UID]*modelPod),
				},
				api: api, patched: make(map[types.UID]int),
			}
			c.story()
		})
	})
}
