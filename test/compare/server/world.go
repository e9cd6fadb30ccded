// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusstore/statusstore/test/compare/sample"
	"github.com/statusstore/statusstore/test/compare/subject"
)

// side names a kind of subject.
type side string

const (
	stock side = "stock"
	ours  side = "ours"
)

var sides = []side{stock, ours}

// shape is that of all pods on the server.
var shape = sample.Two

// world are the pods of one measurement, and what the server has shown of them.
type world struct {
	plane  *plane
	cable  *cable
	scheme string
	id     string
	node   string
	dir    string // of journals
	pods   []*v1.Pod

	stopWatch context.CancelFunc
	watched   sync.WaitGroup

	mu       sync.Mutex       // guards the fields below
	told     *subject.Subject // hears of changes, as from a kubelet's own watch
	shown    map[types.UID]int32
	at       map[seen]time.Time // first time that it was shown
	steps    int                // how often a pod went back to an older version
	watchErr error
}

// seen is one version of one pod.
type seen struct {
	uid     types.UID
	version int32
}

var worlds atomic.Int64

// newWorld creates pods, bound to a node that does not exist.
func newWorld(ctx context.Context, p *plane, count int) (*world, error) {
	id := fmt.Sprintf("compare-%d-%d", os.Getpid(), worlds.Add(1))
	w := &world{
		plane: p, id: id, node: "node-" + id, pods: make([]*v1.Pod, count),
		shown: make(map[types.UID]int32), at: make(map[seen]time.Time), stopWatch: func() {},
	}
	var err error
	if w.dir, err = os.MkdirTemp("", "compare-journal"); err != nil {
		return nil, err
	}
	address, _, err := rest.DefaultServerUrlFor(p.config)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if w.cable, err = newCable(address.Host); err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.scheme = address.Scheme
	var group errgroup.Group
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error {
			pod, err := p.admin.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, shape.Pod(id, w.node, i), metav1.CreateOptions{})
			if err == nil { // else pod is empty, not nil
				w.pods[i] = pod
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(fmt.Errorf("create pods: %w", err), w.close())
	}
	if err := w.watch(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) mine() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: sample.Label + "=" + w.id}
}

// watch notes what the server shows from now on.
func (w *world) watch(ctx context.Context) error {
	ctx, w.stopWatch = context.WithCancel(ctx)
	watch, err := w.plane.admin.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, w.mine())
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	w.watched.Go(func() {
		for event := range watch.ResultChan() {
			pod, ok := event.Object.(*v1.Pod)
			if !ok {
				w.note(nil, fmt.Errorf("watch pods: %v", event.Object))
				return
			}
			w.note(pod, nil)
		}
		if ctx.Err() == nil {
			w.note(nil, errors.New("watch pods: the server ended it"))
		}
	})
	return nil
}

func (w *world) note(pod *v1.Pod, err error) {
	now := time.Now()
	w.mu.Lock()
	if err != nil {
		w.watchErr = err
		w.mu.Unlock()
		return
	}
	told := w.told
	if c := pod.Status.ContainerStatuses; len(c) > 0 {
		version := c[0].RestartCount
		if before, ok := w.shown[pod.UID]; ok && version < before {
			w.steps++
		}
		w.shown[pod.UID] = version
		if _, ok := w.at[seen{pod.UID, version}]; !ok {
			w.at[seen{pod.UID, version}] = now
		}
	}
	w.mu.Unlock()
	if told != nil {
		told.Update(pod)
	}
}

// refresh reads the pods as the server has them, as a kubelet does when it starts.
func (w *world) refresh(ctx context.Context) error {
	list, err := w.plane.admin.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, w.mine())
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	byUID := make(map[types.UID]*v1.Pod, len(list.Items))
	for i := range list.Items {
		byUID[list.Items[i].UID] = &list.Items[i]
	}
	for i, p := range w.pods {
		fresh, ok := byUID[p.UID]
		if !ok {
			return fmt.Errorf("pod %s is gone", p.Name)
		}
		w.pods[i] = fresh
	}
	return nil
}

// hear makes a subject hear of changes.
func (w *world) hear(s *subject.Subject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = s
}

// wait returns when the server has shown a version of each pod, and the time of
// the last one.
func (w *world) wait(ctx context.Context, version func(i int) int32) (time.Time, error) {
	for {
		begin := time.Now()
		last, missing, err := w.state(version)
		if missing == 0 || err != nil {
			return last, err
		}
		// Looking at many pods must not take what is measured its processor. The
		// time of the last one is noted by the watch, not by this loop.
		pause := max(5*time.Millisecond, 50*time.Since(begin))
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%d of %d pods are not up to date: %w", missing, len(w.pods), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (w *world) state(version func(i int) int32) (last time.Time, missing int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.pods {
		at, ok := w.at[seen{p.UID, version(i)}]
		if !ok || w.shown[p.UID] != version(i) {
			missing++
		}
		if at.After(last) {
			last = at
		}
	}
	return last, missing, w.watchErr
}

// client is a new one, counted and over the cable.
func (w *world) client(l limit, c *counter) (kubernetes.Interface, error) {
	config := rest.CopyConfig(w.plane.config)
	config.Host = w.scheme + "://" + w.cable.address
	config.QPS, config.Burst = l.QPS, l.Burst
	config.Wrap(c.wrap)
	return kubernetes.NewForConfig(config)
}

// start makes a subject that knows the pods, and lets it hear of changes.
func (w *world) start(which side, l limit, c *counter) (*subject.Subject, error) {
	client, err := w.client(l, c)
	if err != nil {
		return nil, err
	}
	var s *subject.Subject
	if which == stock {
		s = subject.Stock(client, w.pods)
	} else if s, err = subject.Ours(client, w.node, w.dir, w.pods); err != nil {
		return nil, err
	}
	w.hear(s)
	return s, nil
}

// stop ends the subject.
func (w *world) stop(s *subject.Subject) error {
	w.hear(nil)
	return s.Stop()
}

// setAll sets a status for each pod, each on a goroutine of its own as the pods'
// workers do, and returns when all calls have.
func (w *world) setAll(s *subject.Subject, version func(i int) int32) {
	var wg sync.WaitGroup
	for i, p := range w.pods {
		st := shape.Status(p, int(version(i)))
		wg.Go(func() { s.Set(p, st) })
	}
	wg.Wait()
}

// same is one version for all pods.
func same(version int32) func(int) int32 { return func(int) int32 { return version } }

// close deletes the pods and the journal.
func (w *world) close() error {
	w.stopWatch()
	w.watched.Wait()
	if w.cable != nil {
		w.cable.cut()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	atOnce := metav1.DeleteOptions{GracePeriodSeconds: new(int64)} // nobody would confirm a slow end
	// One request for all takes longer than a server lets it if they are thousands.
	var group errgroup.Group
	group.SetLimit(16)
	for _, p := range w.pods {
		if p == nil {
			continue // creation failed
		}
		group.Go(func() error {
			return w.plane.admin.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, atOnce)
		})
	}
	return errors.Join(group.Wait(), os.RemoveAll(w.dir))
}
