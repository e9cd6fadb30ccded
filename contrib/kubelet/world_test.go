// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	kubestatus "k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/contrib/kubelet"
	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// patience bounds every wait for something that should happen at once.
const patience = 20 * time.Second

// host is all that a status manager asks of the rest of a kubelet.
type host struct {
	mu      sync.Mutex
	ended   bool // no container can run any more
	updated []*v1.Pod
	dropped []types.UID
}

var (
	_ kubestatus.PodDeletionSafetyProvider    = (*host)(nil)
	_ kubestatus.PodStartupLatencyStateHelper = (*host)(nil)
)

func (h *host) PodCouldHaveRunningContainers(*v1.Pod) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.ended
}

func (h *host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

func (h *host) RecordStatusUpdated(_ klog.Logger, pod *v1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updated = append(h.updated, pod)
}

func (h *host) DeletePodStartupState(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped = append(h.dropped, uid)
}

func (h *host) recorded() []*v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.updated)
}

func (h *host) forgot(uid types.UID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.dropped, uid)
}

// lines is a log that can be searched.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, args)
	}, funcr.Options{Verbosity: 5})
}

func (l *lines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// world is the adapter with what is around it.
type world struct {
	t testing.TB
	*kubelet.Manager
	host
	api  *fakeapi.Server
	pods kubepod.Manager
	log  lines
	opts kubelet.Options
}

func newAPI(t testing.TB) (*fakeapi.Server, kubernetes.Interface) {
	t.Helper()
	api, err := fakeapi.ListenInMemory(fakeapi.Options{VolumeHealth: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Errorf("close the API server: %v", err)
		}
	})
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return api, client
}

// newWorld has the pods in the API server and in the pod manager, and is started.
func newWorld(t testing.TB, pods ...*v1.Pod) *world {
	t.Helper()
	w := &world{t: t, pods: kubepod.NewBasicPodManager()}
	var client kubernetes.Interface
	w.api, client = newAPI(t)
	for _, p := range pods {
		w.put(p)
	}
	w.opts = kubelet.Options{
		Store: manager.Options{Path: filepath.Join(t.TempDir(), journal.FileName), Node: node, Client: client},
		Pods:  w.pods, DeletionSafety: &w.host, StartupLatency: &w.host, Logger: w.log.logger(),
	}
	w.open()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *world) open() {
	w.t.Helper()
	m, err := kubelet.New(w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Manager = m
	w.Start(klog.NewContext(context.Background(), w.log.logger()))
}

func (w *world) restart() {
	w.t.Helper()
	if err := w.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// put stores a pod in the API server, and as the kubelet's watch shows it.
func (w *world) put(p *v1.Pod) *v1.Pod {
	w.t.Helper()
	stored, err := w.api.Put(p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.pods.UpdatePod(stored)
	return stored
}

// settle returns when the API server has all that can be sent.
func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if err := w.Store().Drain(ctx); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Store().SyncOnce(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// live waits for the pod as the API server has it; nil is none.
func (w *world) live(name string, cond func(*v1.Pod) bool) *v1.Pod {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	p, err := w.api.Wait(ctx, namespace, name, cond)
	if err != nil {
		w.t.Fatalf("%v; it is %+v", err, p)
	}
	return p
}

// eventually polls, for what gives no signal.
func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func gone(p *v1.Pod) bool { return p == nil }

func inPhase(want v1.PodPhase) func(*v1.Pod) bool {
	return func(p *v1.Pod) bool { return p != nil && p.Status.Phase == want }
}

// quiet is for calls whose log doesn't matter.
var quiet = logr.Discard()
