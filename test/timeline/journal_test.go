// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// dumped runs journal-dump and returns what it printed.
func dumped(t testing.TB, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := dump.Main(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("journal-dump %q ended with %d: %s", args, code, errs.String())
	}
	return out.String()
}

// pod is one pod whose statuses are written.
type pod struct {
	namespace, name string
	uid             types.UID
	status          *v1.PodStatus
}

func newPod(name string) *pod {
	return &pod{"default", name, types.UID("uid-" + name), &v1.PodStatus{Phase: v1.PodRunning,
		Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}},
		ContainerStatuses: []v1.ContainerStatus{{Name: "app", Ready: true, Image: "registry.example.com/app:1", ContainerID: "containerd://" + name,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Unix(1767225600, 0))}}}}}}
}

func (p *pod) ready(yes bool) *pod {
	p.status.ContainerStatuses[0].Ready = yes
	p.status.Conditions[0] = v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}
	if !yes {
		p.status.Conditions[0] = v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [app]"}
	}
	return p
}

func (p *pod) restart() *pod {
	p.status.ContainerStatuses[0].RestartCount++
	p.status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	return p
}

func (p *pod) phase(phase v1.PodPhase) *pod {
	p.status.Phase = phase
	return p
}

func (p *pod) message(text string) *pod {
	p.status.Message = text
	return p
}

// event is the pod's next event.
func (p *pod) event(t testing.TB) journal.Event {
	t.Helper()
	raw, err := podstatus.Encode(p.status)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, Namespace: p.namespace, Name: p.name, UID: p.uid,
		ContentType: journal.ContentTypeProtobuf, Status: raw}
}

// writer fills a journal. Time is that of a synctest bubble.
type writer struct {
	t *testing.T
	*journal.Journal
}

func open(t *testing.T, path string) *writer {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Node: "node-1", Software: "test", Retention: journal.Retention{MaxEvents: 1 << 20, MaxBytes: 4 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	return &writer{t, j}
}

// after appends events that come a while after the last.
func (w *writer) after(d time.Duration, events ...journal.Event) {
	w.t.Helper()
	time.Sleep(d)
	if _, err := w.Append(w.t.Context(), events...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) done() {
	w.t.Helper()
	if err := w.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// hostile is text that wants to run.
const hostile = `</script><script>document.title="owned"</script><img src=x onerror="document.title='owned'">`

// night is when the incident is.
var night = time.Date(2026, 1, 31, 2, 40, 0, 0, time.UTC)

// incident is a night with everything that is drawn: pods that start, one whose
// readiness flaps, restarts, a refusal, an agent that is killed, and text that
// wants to run.
func incident(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), journal.FileName)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(night))
		w := open(t, path)
		web, db, job, cache := newPod("web-0"), newPod("db-0"), newPod("job-7"), newPod("cache-0")
		w.after(time.Minute, web.phase(v1.PodPending).ready(false).event(t))
		w.after(20*time.Second, db.event(t), cache.event(t))
		w.after(time.Minute, web.phase(v1.PodRunning).ready(true).event(t))
		w.after(2*time.Minute, job.event(t))
		for range 4 { // it flaps
			w.after(90*time.Second, cache.ready(false).event(t))
			w.after(40*time.Second, cache.ready(true).event(t))
		}
		w.after(4*time.Minute, web.ready(false).event(t))
		w.after(time.Minute, web.restart().event(t))
		w.after(time.Minute, web.restart().event(t))
		w.after(90*time.Second, web.ready(true).event(t))
		w.PutAck(journal.Ack{UID: db.uid, LiveUID: db.uid, Version: 1, Time: time.Now().UTC()})
		w.PutAck(journal.Ack{UID: web.uid, LiveUID: web.uid, Version: 4, Time: time.Now().UTC()})
		w.after(time.Minute, job.phase(v1.PodSucceeded).ready(false).event(t))
		w.after(time.Minute, journal.Event{Kind: journal.KindRejected, Reason: journal.ReasonSet, Namespace: job.namespace, Name: job.name, UID: job.uid,
			Attributes: map[string]string{journal.AttrContainer: "", journal.AttrFrom: "Succeeded", journal.AttrTo: "Running",
				journal.AttrMessage: "a stored terminal phase is final for this UID"}})
		w.done()

		time.Sleep(4 * time.Minute) // the agent is away
		w = open(t, path)
		evil := newPod("evil")
		evil.name = hostile
		w.after(30*time.Second, evil.message(hostile).event(t))
		w.after(2*time.Minute, web.phase(v1.PodFailed).ready(false).message("node is full").event(t))
		w.after(time.Minute, journal.Event{Kind: journal.KindRemoved, Reason: journal.ReasonOrphaned, Namespace: job.namespace, Name: job.name, UID: job.uid})
		w.after(2*time.Minute, db.message("backup is done").event(t))
		w.PutAck(journal.Ack{UID: db.uid, LiveUID: db.uid, Version: 2, Time: time.Now().UTC()})
		w.done()
	})
	return path
}

// crowd is many pods with many events.
func crowd(t *testing.T, pods, events int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), journal.FileName)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(night))
		w := open(t, path)
		all := make([]*pod, pods)
		for i := range all {
			all[i] = newPod(fmt.Sprintf("web-%d", i))
		}
		random := rand.New(rand.NewPCG(1, 2))
		for n := 0; n < events; {
			var batch []journal.Event
			for ; len(batch) < 500 && n < events; n++ {
				p := all[n%pods]
				switch random.IntN(10) {
				case 0:
					p.restart()
				case 1, 2:
					p.ready(false)
				default:
					p.ready(true).message(fmt.Sprintf("request %d was served", n))
				}
				batch = append(batch, p.event(t))
			}
			w.after(time.Minute, batch...)
		}
		w.done()
	})
	return path
}
