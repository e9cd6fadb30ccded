// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// killWriters write at the same time. Each pod belongs to one of them.
const killWriters = 8

// kills is how often a loop kills, and how long each agent is written to before.
// STATUSSTORE_KILLS=N makes it N, with pauses of 50 to 500 ms; by default pauses
// are short, and all loops together kill 200 times.
func kills(t *testing.T, usual int) (rounds int, pause func() time.Duration) {
	t.Helper()
	between := func(low, high time.Duration) func() time.Duration {
		return func() time.Duration { return low + rand.N(high-low) }
	}
	if s := os.Getenv("STATUSSTORE_KILLS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("STATUSSTORE_KILLS=%s is not a count", s)
		}
		return n, between(50*time.Millisecond, 500*time.Millisecond)
	}
	switch {
	case testing.Short():
		usual = min(usual, 10)
	case raceDetector(): // it makes each start take five times as long
		usual = min(usual, 25)
	}
	return usual, between(3*time.Millisecond, 30*time.Millisecond)
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// acceptance is a mutation that was answered with 200.
type acceptance struct {
	uid      types.UID
	version  journal.Version
	sequence journal.Sequence
	message  string // of a status that was set; empty after other calls
}

// podLog is what the writer of a pod knows. Only one writer has it.
type podLog struct {
	pod     *v1.Pod
	sent    int // counter of the newest status that was sent, accepted or not
	last    acceptance
	removed bool // since last
	leaving bool // a removal was asked for since last, answered or not
	ended   bool // a set may be refused
}

// writers write from several goroutines until nobody answers.
type writers struct {
	t    *testing.T
	pods []*podLog

	mu       sync.Mutex
	accepted []acceptance  // guarded by mu; of one pod in order
	first    chan struct{} // guarded by mu; closed by the first acceptance
}

func newWriters(t *testing.T, pods int) *writers {
	w := &writers{t: t}
	for i := range pods {
		w.pods = append(w.pods, &podLog{pod: newPod(i, withContainer)})
	}
	return w
}

// withContainer gives the pod's container a status.
func withContainer(p *v1.Pod) {
	p.Status.QOSClass = v1.PodQOSBestEffort
	p.Status.ContainerStatuses = []v1.ContainerStatus{{
		Name: "app", Image: "img", ImageID: "img", ContainerID: "containerd://" + p.Name, Started: new(true),
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}
}

// run calls write for one pod after the other, and kills the agent a while after
// the first success. It returns what was accepted.
func (w *writers) run(p *process, pause time.Duration, write func(*process, *podLog) (alive bool)) []acceptance {
	w.t.Helper()
	first := make(chan struct{})
	w.accepted, w.first = nil, first
	var group sync.WaitGroup
	for n := range killWriters {
		group.Go(func() {
			for {
				for i := n; i < len(w.pods); i += killWriters {
					if !write(p, w.pods[i]) || w.t.Failed() {
						return
					}
				}
			}
		})
	}
	select {
	case <-first:
	case <-time.After(slack * 10 * time.Second): // all were refused, or had no answer
	}
	time.Sleep(pause) // among the writes, at no particular moment
	p.kill()
	group.Wait()
	return w.accepted
}

// note remembers an accepted mutation.
func (w *writers) note(l *podLog, a acceptance) {
	a.uid = l.pod.UID
	if a.version <= l.last.version || a.sequence <= l.last.sequence {
		w.t.Errorf("%s: got version %d at sequence %d after %+v", a.uid, a.version, a.sequence, l.last)
	}
	l.last, l.removed, l.leaving = a, false, false
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.accepted) == 0 {
		close(w.first)
	}
	w.accepted = append(w.accepted, a)
}

// set writes a status with the next counter in its message.
func (w *writers) set(p *process, l *podLog) (alive bool) {
	l.sent++
	l.pod.Status.Message = strconv.Itoa(l.sent)
	code, header, body, err := p.exchange(http.MethodPut, httpapi.PodStatusPath(l.pod.Namespace, l.pod.Name), l.pod)
	switch {
	case err != nil:
		return false
	case code == http.StatusUnprocessableEntity && l.ended:
	case code != http.StatusOK:
		w.t.Errorf("set %s: %d %s", l.pod.UID, code, body)
	default:
		version, err1 := strconv.ParseUint(header.Get(httpapi.HeaderVersion), 10, 64)
		sequence, err2 := strconv.ParseUint(header.Get(httpapi.HeaderSequence), 10, 64)
		if err1 != nil || err2 != nil {
			w.t.Errorf("set %s: headers %v", l.pod.UID, header)
		}
		w.note(l, acceptance{version: journal.Version(version), sequence: journal.Sequence(sequence), message: l.pod.Status.Message})
	}
	return true
}

// post makes a call about the pod that may change it.
func (w *writers) post(p *process, l *podLog, path string, in any) (alive bool) {
	code, _, body, err := p.exchange(http.MethodPost, path, in)
	switch {
	case err != nil:
		return false
	case code == http.StatusNotFound && (l.leaving || l.last.version == 0 || l.ended): // pod, or container
	case code == http.StatusUnprocessableEntity && l.ended:
	case code != http.StatusOK:
		w.t.Errorf("%s: %d %s", path, code, body)
	default:
		var result httpapi.CallResult
		if err := json.Unmarshal(body, &result); err != nil {
			w.t.Errorf("%s: %v", path, err)
		}
		if result.Outcome == httpapi.OutcomeApplied {
			w.note(l, acceptance{version: result.Version, sequence: result.Sequence})
		}
	}
	return true
}

// remove drops the pod and keeps all others.
func (w *writers) remove(p *process, l *podLog) (alive bool) {
	keep := []types.UID{}
	for _, other := range w.pods {
		if other != l {
			keep = append(keep, other.pod.UID)
		}
	}
	l.leaving = true
	code, _, body, err := p.exchange(http.MethodPost, httpapi.PathRetain, httpapi.RetainRequest{UIDs: &keep})
	switch {
	case err != nil:
		return false
	case code != http.StatusOK:
		w.t.Errorf("retain: %d %s", code, body)
	default:
		l.removed, l.ended = true, false
	}
	return true
}

// mutate makes a random call.
func (w *writers) mutate(p *process, l *podLog) (alive bool) {
	ready := rand.IntN(2) == 0
	container := l.pod.Status.ContainerStatuses[0].ContainerID
	switch n := rand.IntN(100); {
	case l.ended && n < 30, n < 3:
		return w.remove(p, l)
	case n < 6:
		l.ended = true
		return w.post(p, l, httpapi.TerminatePath(l.pod.UID), nil)
	case n < 10:
		return w.post(p, l, httpapi.FinishedPath(l.pod.UID), nil)
	case n < 35:
		return w.post(p, l, httpapi.ReadinessPath(l.pod.UID), httpapi.ReadinessRequest{ContainerID: container, Ready: &ready})
	case n < 50:
		return w.post(p, l, httpapi.StartupPath(l.pod.UID), httpapi.StartupRequest{ContainerID: container, Started: &ready})
	default:
		l.pod.Status.ContainerStatuses[0].Ready = ready
		return w.set(p, l)
	}
}

// C29: acknowledged means on disk. One file outlives all the agents.
func TestC29_AcknowledgedMeansOnDisk(t *testing.T) {
	t.Parallel()
	rounds, pause := kills(t, 80)
	c := childConfig{Dir: shortDir(t), MaxEvents: 50_000}
	w := newWriters(t, killWriters)
	served := make(map[types.UID]acceptance) // newest that an agent has shown
	head := journal.Sequence(0)
	total := 0
	check := func(p *process, accepted []acceptance) {
		t.Helper()
		s := p.status()
		if s.HeadSequence <= head {
			t.Fatalf("head %d after %d", s.HeadSequence, head)
		}
		events := p.eventsFrom(head + 1)
		for _, a := range accepted {
			if e, ok := events[a.sequence]; !ok || e.UID != a.uid || e.Version != a.version || e.Status.Message != a.message {
				t.Errorf("accepted %+v; sequence %d is %+v", a, a.sequence, e)
			}
		}
		head = s.HeadSequence
		for _, l := range w.pods {
			if l.last.version == 0 {
				continue
			}
			got := p.shown(l.pod)
			before := served[got.uid]
			counter, err := strconv.Atoi(got.message)
			noted, _ := strconv.Atoi(l.last.message) // our own
			if err != nil || counter < noted || counter > l.sent {
				t.Errorf("%s: message %q is stored, %d was accepted, %d sent", got.uid, got.message, noted, l.sent)
			}
			if got.version < l.last.version || got.version == l.last.version && got != l.last {
				t.Errorf("%s: %+v is stored, %+v was accepted", got.uid, got, l.last)
			}
			if got.version < before.version || got.sequence < before.sequence || got.version == before.version && got != before {
				t.Errorf("%s: %+v is stored, before the kill it was %+v", got.uid, got, before)
			}
			served[got.uid] = got
		}
	}
	var accepted []acceptance
	for range rounds {
		p := launch(t, c)
		check(p, accepted)
		accepted = w.run(p, pause(), w.set)
		total += len(accepted)
		if t.Failed() {
			return
		}
		p.quiet = true
	}
	check(launch(t, c), accepted)
	if total < rounds {
		t.Errorf("%d mutations were accepted before %d kills: the test did not test much", total, rounds)
	}
	t.Logf("%d kills, %d accepted mutations", rounds, total)
}

// C24: event and projection change together, whatever is under way when the agent
// is killed: commits, acks, trims, or its own start.
func TestC24_EventAndProjectionChangeTogether(t *testing.T) {
	const pods = 20
	t.Parallel()
	rounds, pause := kills(t, 100)
	w := newWriters(t, pods)
	var live []*v1.Pod
	for i := range pods {
		live = append(live, newPod(i))
	}
	_, kubeconfig := newAPI(t, live...)
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: 50 * time.Millisecond, MaxEvents: 200}
	given := make(map[versionID]journal.Sequence)
	left := onDisk{stored: map[types.UID]storedPod{}}
	total, acks, extra := 0, 0, 0
	for round := range rounds {
		p := launch(t, c)
		left.compare(p)
		lifetime := pause()
		if round%10 == 0 {
			lifetime += 600 * time.Millisecond // acks wait for company before they are written
		}
		accepted := w.run(p, lifetime, w.mutate)
		total += len(accepted)
		before := left.head
		left = readDisk(t, c.Dir, given)
		if left.head <= before {
			t.Errorf("head %d after %d", left.head, before)
		}
		left.contains(t, w, accepted)
		acks += len(left.acked)
		if t.Failed() {
			return
		}
		p.quiet = true
		if round%5 == 0 { // during the start
			p = spawn(t, c)
			time.Sleep(rand.N(100 * time.Millisecond))
			p.kill()
			p.quiet = true
			extra++
		}
	}
	p := launch(t, c)
	left.compare(p)
	eventually(t, 10*time.Second, func() bool { return p.status().Pending == 0 })
	if total < rounds || acks < rounds {
		t.Errorf("%d mutations were accepted before %d kills, %d acks seen: the test did not test much", total, rounds, acks)
	}
	t.Logf("%d kills, %d accepted mutations, trimmed up to %d of %d", rounds+extra, total, left.horizon, left.head)
}

// onDisk is what a killed agent has left, before anybody else opened it.
type onDisk struct {
	head, horizon journal.Sequence
	events        map[journal.Sequence]journal.Event
	newest        map[types.UID]journal.Event // removals included
	stored        map[types.UID]storedPod     // the fold of the events
	acked         map[types.UID]journal.Version
}

type storedPod struct {
	Version  journal.Version
	Finished bool
	Status   string // JSON
}

// versionID is one version of one pod.
type versionID struct {
	uid     types.UID
	version journal.Version
}

// readDisk reads the file. Given is what each version was given to so far.
func readDisk(t *testing.T, dir string, given map[versionID]journal.Sequence) onDisk {
	t.Helper()
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stats, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	d := onDisk{
		head: stats.Head, horizon: stats.Horizon,
		events: map[journal.Sequence]journal.Event{}, newest: map[types.UID]journal.Event{},
		stored: map[types.UID]storedPod{}, acked: map[types.UID]journal.Version{},
	}
	for e, err := range r.Events(1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		d.events[e.Sequence] = e
		switch e.Kind {
		case journal.KindSet, journal.KindFinished:
			status, err := podstatus.Decode(e.Status)
			if err != nil {
				t.Fatalf("sequence %d: %v", e.Sequence, err)
			}
			d.stored[e.UID] = storedPod{e.Version, e.Finished, asJSON(t, status)}
		case journal.KindRemoved:
			delete(d.stored, e.UID)
		default:
			continue
		}
		d.newest[e.UID] = e
		id := versionID{e.UID, e.Version}
		if before, ok := given[id]; ok && before != e.Sequence {
			t.Errorf("%+v was given to sequence %d and to %d", id, before, e.Sequence)
		}
		given[id] = e.Sequence
	}
	acks, err := r.Acks()
	if err != nil {
		t.Fatal(err)
	}
	for uid, ack := range acks {
		d.acked[uid] = ack.Version
		if stored, ok := d.stored[uid]; !ok || ack.Version > stored.Version {
			t.Errorf("%s: version %d is acked, %d is stored", uid, ack.Version, stored.Version)
		}
	}
	return d
}

// contains looks for all that was accepted.
func (d onDisk) contains(t *testing.T, w *writers, accepted []acceptance) {
	t.Helper()
	for _, a := range accepted {
		e, ok := d.events[a.sequence]
		switch {
		case !ok && a.sequence <= d.horizon: // trimmed; its pod is looked at below
		case !ok || e.UID != a.uid || e.Version != a.version:
			t.Errorf("accepted %+v; sequence %d is %v %s version %d", a, a.sequence, e.Kind, e.UID, e.Version)
		case a.message != "":
			if status, err := podstatus.Decode(e.Status); err != nil || status.Message != a.message {
				t.Errorf("accepted %+v; sequence %d has message %q, %v", a, a.sequence, status.Message, err)
			}
		}
	}
	for _, l := range w.pods {
		e := d.newest[l.pod.UID]
		switch {
		case e.Version < l.last.version:
			t.Errorf("%s: %+v was accepted, version %d is stored", l.pod.UID, l.last, e.Version)
		case l.removed && l.last.version > 0 && e.Version == l.last.version:
			t.Errorf("%s: removed, but version %d is stored", l.pod.UID, e.Version)
		case !l.removed && e.Version == l.last.version && e.Sequence != l.last.sequence:
			t.Errorf("%s: %+v was accepted, sequence %d is stored", l.pod.UID, l.last, e.Sequence)
		}
	}
}

// compare wants the agent to serve the fold of the events.
func (d onDisk) compare(p *process) {
	p.t.Helper()
	var records httpapi.PodRecordList
	p.call(http.MethodGet, httpapi.PathPods, nil, &records)
	var list v1.PodList
	p.call(http.MethodGet, "/api/v1/pods", nil, &list)
	got := make(map[types.UID]storedPod, len(records.Pods))
	for _, r := range records.Pods {
		if r.AckedVersion > r.Version || r.AckedVersion < d.acked[r.UID] {
			p.t.Errorf("%s: acked %d of version %d, in the file %d", r.UID, r.AckedVersion, r.Version, d.acked[r.UID])
		}
		i := slices.IndexFunc(list.Items, func(pod v1.Pod) bool { return pod.UID == r.UID })
		if i < 0 {
			p.t.Errorf("%s is not in the list of pods", r.UID)
			continue
		}
		got[r.UID] = storedPod{r.Version, r.Finished, asJSON(p.t, &list.Items[i].Status)}
	}
	if len(list.Items) != len(records.Pods) {
		p.t.Errorf("%d pods in the list, %d records", len(list.Items), len(records.Pods))
	}
	if diff := cmp.Diff(d.stored, got); diff != "" {
		p.t.Errorf("served statuses are not the fold of the events (-events +served):\n%s", diff)
	}
}

func asJSON(t *testing.T, status *v1.PodStatus) string {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
