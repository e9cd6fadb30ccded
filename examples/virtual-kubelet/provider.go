// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

const (
	// retryStore is how long a step waits that could not be stored, as on a full disk.
	retryStore = time.Second
	idle       = time.Hour
)

// provider runs pods by their timetables. All that it knows of a pod is in the store: a
// step is taken when the store has it.
type provider struct {
	store *manager.Manager
	live  corev1listers.PodLister // the framework's
	o     options
	wake  chan struct{} // capacity 1: see lookAgain

	// mu guards workloads and what they point to, and is held while a step is stored: one
	// after the other is enough for an example.
	mu        sync.Mutex
	workloads map[types.UID]*workload
}

// workload is a pod that was given to the provider.
type workload struct {
	pod    *v1.Pod
	stored bool      // the store has a status, or had one until the pod was gone
	since  time.Time // when it was stored, or the pod given
	retry  time.Time // not before, after a failure
}

var (
	_ node.PodLifecycleHandler = (*provider)(nil)
	_ node.PodNotifier         = (*provider)(nil)
)

// newProvider takes over the pods that the store has from the time before this start.
func newProvider(store *manager.Manager, live corev1listers.PodLister, o options) *provider {
	p := &provider{store: store, live: live, o: o, wake: make(chan struct{}, 1), workloads: make(map[types.UID]*workload)}
	for _, e := range store.Entries() {
		if pod, ok := store.Pod(e.UID); ok {
			p.workloads[e.UID] = &workload{pod: pod, stored: true, since: e.Time}
		}
	}
	return p
}

// NotifyPods is there to not call the function that it is given. With it, the framework
// would send statuses itself, from memory. A provider without this method is asked for
// its statuses every five seconds, and they are sent in the same way.
func (p *provider) NotifyPods(context.Context, func(*v1.Pod)) {}

// CreatePod takes a pod over. It does not fail: the pod's first status is stored at once or,
// should that not work now, as soon as it does. (After an error the framework would say that
// the pod has failed, and might never ask again.)
func (p *provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &workload{pod: pod.DeepCopy(), since: time.Now()}
	p.workloads[pod.UID] = w
	p.step(ctx, w, w.since)
	p.lookAgain()
	return nil
}

// UpdatePod keeps the new object, which may change when the next step is due. It is on
// disk with that step; after a crash before it, the framework calls again. A pod that is
// not here any more was dropped because its object is gone: that is no failure of the pod.
func (p *provider) UpdatePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, ok := p.workloads[pod.UID]; ok {
		w.pod = pod.DeepCopy()
		p.lookAgain()
	}
	return nil
}

// lookAgain has run find out anew when the next step is due.
func (p *provider) lookAgain() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// DeletePod ends a pod. The framework calls it for one that is being deleted, and for one
// that is gone from the server.
func (p *provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	return p.end(ctx, pod.UID)
}

// end stores a pod's end, and that it is finished: the store deletes the object then. If the
// object is gone there is nobody to tell, and the pod is forgotten.
func (p *provider) end(ctx context.Context, uid types.UID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.workloads[uid]
	if !ok {
		return errdefs.NotFoundf("pod %s is not here", uid)
	}
	live, err := p.live.Pods(w.pod.Namespace).Get(w.pod.Name)
	if apierrors.IsNotFound(err) || err == nil && live.UID != uid {
		if err := p.store.Remove(ctx, uid, journal.ReasonDeleted); err != nil {
			return err
		}
		delete(p.workloads, uid)
		return nil
	} else if err != nil {
		return err
	}
	w.pod = live.DeepCopy() // with its deletion timestamp
	stored, ok := p.store.GetPodStatus(uid)
	if !ok && w.stored {
		return errdefs.NotFoundf("pod %s is not here any more", uid) // dropped by the store
	}
	if !ok {
		stored = new(waiting(w.pod, time.Now()))
	}
	if !terminal(stored.Phase) {
		if err := p.record(ctx, w, ended(w.pod, stored, exitDeleted, time.Now())); err != nil {
			return err
		}
	}
	_, err = p.store.FinishPod(ctx, uid)
	return err
}

// record stores a status. Once it returns nil, the status will be on the server sooner or
// later, whatever happens to this process. p.mu is held.
func (p *provider) record(ctx context.Context, w *workload, status v1.PodStatus) error {
	ctx = context.WithoutCancel(ctx) // a commit is short, and whether it was one must be known
	var version journal.Version
	if e, ok := p.store.Entry(w.pod.UID); ok {
		version = e.Version
	} else if w.stored {
		return errdefs.NotFoundf("pod %s is not here any more", w.pod.UID)
	}
	// With the version, because the store may drop the pod right now: it must not come back.
	change, err := p.store.SetPodStatusIf(ctx, w.pod, status, version)
	if err != nil {
		return err
	}
	w.stored, w.since = true, time.Now()
	restarts := int32(0)
	for _, c := range status.ContainerStatuses {
		restarts = max(restarts, c.RestartCount)
	}
	fmt.Fprintf(p.o.out, "stored %s/%s %s version=%d phase=%s restarts=%d\n",
		w.pod.Namespace, w.pod.Name, change.UID, change.Version, status.Phase, restarts)
	return nil
}

// GetPod returns a pod with the stored status. The framework asks by name and takes what it
// gets for the pod that the server has, so a former pod of the name must not be found.
func (p *provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	live, err := p.live.Pods(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, w := range p.workloads {
		if w.pod.Namespace != namespace || w.pod.Name != name || live != nil && live.UID != uid {
			continue
		}
		if pod, ok := p.withStatus(w); ok {
			return pod, nil
		}
	}
	return nil, errdefs.NotFoundf("pod %s/%s is not here", namespace, name)
}

// GetPodStatus is GetPod for the status alone.
func (p *provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns all pods.
func (p *provider) GetPods(context.Context) ([]*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []*v1.Pod
	for _, w := range p.workloads {
		if pod, ok := p.withStatus(w); ok {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods, nil
}

// withStatus returns a copy of a pod; false if the store dropped it, because its object is
// gone. p.mu is held.
func (p *provider) withStatus(w *workload) (*v1.Pod, bool) {
	pod := w.pod.DeepCopy()
	status, ok := p.store.GetPodStatus(pod.UID)
	if ok {
		pod.Status = *status
	}
	return pod, ok || !w.stored
}

// run takes each step when it is due, until the context ends.
func (p *provider) run(ctx context.Context) error {
	for {
		timer := time.NewTimer(time.Until(p.steps(ctx, time.Now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// steps takes what is due and returns when to look again.
func (p *provider) steps(ctx context.Context, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := now.Add(idle)
	for uid, w := range p.workloads {
		due, ok := p.step(ctx, w, now)
		if !ok {
			delete(p.workloads, uid)
		} else if !due.IsZero() && due.Before(again) {
			again = due
		}
	}
	return again
}

// step takes a pod's next step if it is due, and returns when to look again; never if zero.
// ok is false if the store has dropped the pod. p.mu is held.
func (p *provider) step(ctx context.Context, w *workload, now time.Time) (again time.Time, ok bool) {
	stored, known := p.store.GetPodStatus(w.pod.UID)
	if w.stored && !known {
		return again, false
	}
	if w.retry.After(now) {
		return w.retry, true
	}
	status, due, more := next(w.pod, stored, w.since)
	if !more || due.After(now) {
		return due, true
	}
	if err := p.record(ctx, w, status); err != nil {
		p.o.log.Error("status is not stored", "namespace", w.pod.Namespace, "name", w.pod.Name, "uid", w.pod.UID, "err", err)
		w.retry = now.Add(retryStore)
		return w.retry, true
	}
	return now, true // the next one may be due as well
}
