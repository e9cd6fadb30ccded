// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const node = "node-1"

// memory is a projection and journal in memory: Entries, Changes, Acks, Dropper.
type memory struct {
	mu       sync.Mutex
	entries  map[types.UID]*projection.Entry
	versions map[types.UID]journal.Version
	seq      journal.Sequence
	changed  map[types.UID]struct{}
	wake     chan struct{}
	flushes  int
	dropped  []string // "UID reason"
	dropErr  error
	flushErr error
}

func newMemory() *memory {
	return &memory{
		entries:  make(map[types.UID]*projection.Entry),
		versions: make(map[types.UID]journal.Version),
		changed:  make(map[types.UID]struct{}),
		wake:     make(chan struct{}, 1),
	}
}

func (m *memory) Get(uid types.UID) (*projection.Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[uid]
	return e, ok
}

func (m *memory) List() []*projection.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.entries), func(a, b *projection.Entry) int { return cmp.Compare(a.UID, b.UID) })
}

func (m *memory) Watch() (<-chan struct{}, func() []types.UID, func()) {
	return m.wake, func() []types.UID {
		m.mu.Lock()
		defer m.mu.Unlock()
		uids := slices.Collect(maps.Keys(m.changed))
		clear(m.changed)
		return uids
	}, func() {}
}

func (m *memory) announce(uid types.UID) {
	m.changed[uid] = struct{}{}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *memory) Ack(uid, liveUID types.UID, v journal.Version) {
	m.change(uid, func(e *projection.Entry) {
		if e.AckedUID != liveUID || v > e.Acked {
			e.Acked, e.AckedUID = v, liveUID
		}
		if !e.Pending() {
			e.PendingSince = time.Time{}
		}
	})
}

func (m *memory) ClearAck(uid types.UID) {
	m.change(uid, func(e *projection.Entry) { e.Acked, e.AckedUID = 0, "" })
}

func (m *memory) change(uid types.UID, f func(*projection.Entry)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[uid]; ok {
		next := *e
		f(&next)
		m.entries[uid] = &next
	}
}

func (m *memory) Flush(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushes++
	return m.flushErr
}

func (m *memory) Drop(_ context.Context, uid types.UID, reason journal.Reason) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dropErr != nil {
		return m.dropErr
	}
	delete(m.entries, uid)
	m.dropped = append(m.dropped, string(uid)+" "+string(reason))
	m.announce(uid)
	return nil
}

// set stores a new version of a pod's status.
func (m *memory) set(pod *v1.Pod, status v1.PodStatus) *projection.Entry {
	return m.store(pod, status, false)
}

// terminate stores a finished version.
func (m *memory) terminate(pod *v1.Pod, status v1.PodStatus) *projection.Entry {
	return m.store(pod, status, true)
}

func (m *memory) store(pod *v1.Pod, status v1.PodStatus, finished bool) *projection.Entry {
	normal := podstatus.Normalise(pod, &status)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	m.versions[pod.UID]++
	e := &projection.Entry{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Version: m.versions[pod.UID],
		Incarnation: 1, Sequence: m.seq, Time: time.Now(), PendingSince: time.Now(),
		Reason: journal.ReasonSet, Finished: finished, Status: normal,
	}
	if old := m.entries[pod.UID]; old != nil {
		e.Acked, e.AckedUID, e.Finished = old.Acked, old.AckedUID, finished || old.Finished
	}
	m.entries[pod.UID] = e
	m.announce(pod.UID)
	return e
}

func (m *memory) remove(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, uid)
	m.announce(uid)
}

func (m *memory) drops() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.dropped)
}

var (
	_ Entries = (*memory)(nil)
	_ Changes = (*memory)(nil)
	_ Acks    = (*memory)(nil)
	_ Dropper = (*memory)(nil)
)

// world is a server, a store and, between start and stop, an agent.
type world struct {
	t      *testing.T
	api    *fakeapi.Server
	memory *memory
	client kubernetes.Interface
	live   *LivePods
	*Syncer
	log  lockedBuffer
	stop func()
}

// inWorld runs a test with an API server in memory and time that doesn't cost
// any. Whatever f starts is stopped.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	inWorldWith(t, fakeapi.Options{}, f)
}

func inWorldWith(t *testing.T, o fakeapi.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api, err := fakeapi.ListenInMemory(o)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, api: api, memory: newMemory(), stop: func() {}}
		if w.client, err = kubernetes.NewForConfig(api.RESTConfig()); err != nil {
			t.Fatal(err)
		}
		// Deferred, so that a test that ends early leaves nothing running either.
		defer func() {
			w.stop()
			if err := api.Close(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Log(w.log.String())
			}
		}()
		f(t, w)
	})
}

// build makes a Syncer without running it.
func (w *world) build(change ...func(*Options)) {
	w.t.Helper()
	logger := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.live = NewLivePods(w.client, node, LiveOptions{Logger: logger})
	o := Options{
		Client: w.client, Live: w.live, Entries: w.memory, Acks: w.memory, Drops: w.memory,
		Changes: w.memory, Logger: logger,
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if w.Syncer, err = New(o); err != nil {
		w.t.Fatal(err)
	}
}

// start builds and runs a Syncer; stop ends it as the end of the context does.
func (w *world) start(change ...func(*Options)) {
	w.t.Helper()
	w.build(change...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{w.live.Run, w.Syncer.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Errorf("Run = %v", err)
			}
		})
	}
	w.stop = func() {
		cancel()
		running.Wait()
		w.stop = func() {}
	}
}

// restart stops the agent, forgets the requests and starts a new one.
func (w *world) restart(change ...func(*Options)) {
	w.t.Helper()
	w.stop()
	w.api.ResetRequests()
	w.start(change...)
}

// pause lets time pass until everything waits again.
func (w *world) pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// put stores a pod on the server.
func (w *world) put(pod *v1.Pod) *v1.Pod {
	w.t.Helper()
	stored, err := w.api.Put(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// onServer returns the status that the server holds.
func (w *world) onServer(name string) v1.PodStatus {
	w.t.Helper()
	pod, ok := w.api.Pod("default", name)
	if !ok {
		w.t.Fatalf("no pod %s on the server", name)
	}
	return pod.Status
}

// acked returns the versions that are acked and stored.
func (w *world) acked(uid types.UID) (acked, version journal.Version) {
	w.t.Helper()
	e, ok := w.memory.Get(uid)
	if !ok {
		w.t.Fatalf("no entry %s", uid)
	}
	return e.Acked, e.Version
}

func (w *world) wantAcked(uid types.UID, want journal.Version) {
	w.t.Helper()
	if acked, version := w.acked(uid); acked != want || version != want {
		w.t.Errorf("%s: acked %d, version %d, want both %d", uid, acked, version, want)
	}
}

// wantCounts compares the number of requests by verb.
func (w *world) wantCounts(want map[fakeapi.Verb]int) {
	w.t.Helper()
	for _, verb := range []fakeapi.Verb{fakeapi.List, fakeapi.Watch, fakeapi.Get, fakeapi.Patch, fakeapi.Delete, fakeapi.Put, fakeapi.Post} {
		if got := w.api.Count(verb); got != want[verb] {
			w.t.Errorf("%d × %s, want %d", got, verb, want[verb])
		}
	}
}

// about1 matches requests of some verbs about one pod.
func about1(name string, verbs ...fakeapi.Verb) fakeapi.Match {
	return fakeapi.Match{Verbs: verbs, Name: name}
}

// newPod is default/NAME with the containers app and side.
func newPod(name string, uid types.UID) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid, Generation: 1},
		Spec: v1.PodSpec{
			NodeName: node,
			Containers: []v1.Container{
				{Name: "app", Image: "example.com/app"}, {Name: "side", Image: "example.com/side"},
			},
		},
	}
}

var noon = metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))

// running is the status "Running/ready"; n tells versions apart.
func running(n int32) v1.PodStatus {
	container := func(name string) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name: name, Ready: true, Started: new(true), RestartCount: n, ContainerID: "containerd://" + name,
			Image: "example.com/" + name, ImageID: "sha256:1",
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: noon}},
		}
	}
	s := v1.PodStatus{
		Phase: v1.PodRunning, StartTime: &noon, HostIP: "10.0.0.1", PodIP: "10.1.0.1",
		HostIPs: []v1.HostIP{{IP: "10.0.0.1"}}, PodIPs: []v1.PodIP{{IP: "10.1.0.1"}},
		QOSClass:           v1.PodQOSBestEffort,
		ObservedGeneration: 1,
		ContainerStatuses:  []v1.ContainerStatus{container("app"), container("side")},
	}
	for _, t := range []v1.PodConditionType{v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled} {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: t, Status: v1.ConditionTrue, LastTransitionTime: noon, ObservedGeneration: 1})
	}
	return s
}

func setCondition(s *v1.PodStatus, t v1.PodConditionType, value v1.ConditionStatus, at metav1.Time) {
	if c := condition(s.Conditions, t); c != nil {
		c.Status, c.LastTransitionTime = value, at
		return
	}
	s.Conditions = append(s.Conditions, v1.PodCondition{Type: t, Status: value, LastTransitionTime: at})
}

// ended is a terminal status with an exit code of app.
func ended(phase v1.PodPhase, code int32) v1.PodStatus {
	s := running(0)
	s.Phase = phase
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.Ready, c.Started = false, new(false)
		c.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: code, Reason: "Done", StartedAt: noon, FinishedAt: noon, ContainerID: c.ContainerID,
		}}
	}
	for _, t := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		c := condition(s.Conditions, t)
		c.Status, c.Reason = v1.ConditionFalse, "PodFailed"
		if phase == v1.PodSucceeded {
			c.Reason = "PodCompleted"
		}
	}
	return s
}

// never makes a pod whose containers aren't restarted.
func never(pod *v1.Pod) *v1.Pod {
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	return pod
}

// deliver puts a pod on the server, stores a status and waits until it is acked.
func (w *world) deliver(pod *v1.Pod, status v1.PodStatus) {
	w.t.Helper()
	w.put(pod)
	e := w.memory.set(pod, status)
	w.pause(2 * time.Second)
	w.wantAcked(pod.UID, e.Version)
}

// many calls f for the pods web-0 to web-N.
func many(n int, f func(i int, pod *v1.Pod)) {
	for i := range n {
		f(i, newPod(fmt.Sprintf("web-%d", i), types.UID(fmt.Sprintf("uid-%d", i))))
	}
}

var errDisk = errors.New("no space left on device")

// lockedBuffer is a log that is read while others write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
