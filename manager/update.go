// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// write is an event to be appended, with what must happen when it is durable.
type write struct {
	event      journal.Event
	status     *v1.PodStatus // what event.Status encodes; immutable from here on
	terminated []podstatus.Termination
	added      bool // for the notification
	removed    bool // for the notification
	object     rememberedPod
	resize     *slots // if this write changes them
}

// update is the way every call about one pod takes: under the pod's lock, plan
// computes what follows from the pod's entry (nil without one), and the write it
// returns, if any, is committed. The context bounds waiting, not the commit: if it
// ends meanwhile, the write may still become durable. The lock stays with the
// commit until its end, so no later call computes from an entry that is about to
// be replaced.
func (m *Manager) update(ctx context.Context, uid types.UID, plan func(*projection.Entry) (*write, Change, error)) (Change, error) {
	if err := m.enter(); err != nil {
		return Change{}, err
	}
	if err := m.locks.lock(ctx, uid); err != nil {
		m.leave()
		return Change{}, fmt.Errorf("wait for pod %s: %w", uid, err)
	}
	handedOn := false
	defer func() { // also if plan panics: other calls must not wait for ever
		if !handedOn {
			m.locks.unlock(uid)
			m.leave()
		}
	}()
	entry, _ := m.projection.Get(uid)
	w, change, err := plan(entry)
	if err != nil || w == nil {
		return change, err
	}
	handedOn = true
	return detached(ctx, func() (Change, error) {
		change, err := m.commit(context.WithoutCancel(ctx), w)
		m.locks.unlock(uid)
		m.leave()
		if err == nil {
			m.tell(w)
		}
		return change, err
	})
}

// detached runs fn, which ends by itself, and stops waiting for it with ctx. Close
// waits for what fn holds.
func detached[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return fn()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := fn()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("stopped waiting for a commit that may still happen: %w", context.Cause(ctx))
	}
}

// commit makes a write durable. The pod's lock is held.
func (m *Manager) commit(ctx context.Context, w *write) (Change, error) {
	e := &w.event
	if w.status != nil {
		encoded, err := podstatus.Encode(w.status)
		if err != nil {
			return Change{}, &InvalidError{Field: "status", Detail: err.Error()}
		}
		e.ContentType, e.Status, e.Payload = journal.ContentTypeProtobuf, encoded, w.status
		// What lets a pod end must fit on a full disk too.
		e.Essential = podstatus.Terminal(w.status.Phase) || e.Finished
	}
	resize := m.resizes.get(e.UID)
	if w.resize != nil {
		resize = *w.resize
	}
	var err error
	if e.Aux, err = encodeResize(resize); err != nil {
		return Change{}, &InvalidError{Field: "resize", Detail: err.Error()}
	}
	e.Object = m.memory.toPersist(e.UID, w.object)
	withdraw := m.memory.announce(e.UID, w.object)
	events, err := m.journal.Append(ctx, *e)
	if err != nil {
		withdraw()
		return Change{}, fmt.Errorf("store status of pod %s/%s: %w", e.Namespace, e.Name, err)
	}
	stored := events[0]
	m.memory.stored(e.UID, w.object)
	if w.resize != nil {
		m.resizes.put(e.UID, resize)
	}
	m.rejections.clear(e.UID)
	if w.resize == nil { // slots are not part of the status
		kind := NotifyUpdated
		if w.removed {
			kind = NotifyRemoved
		}
		m.notifier.enqueue(Notification{
			Kind: kind, Added: w.added, UID: e.UID, Namespace: e.Namespace, Name: e.Name,
			Version: stored.Version, status: w.status,
		})
	}
	return Change{UID: e.UID, Changed: true, Version: stored.Version, Sequence: stored.Sequence, stored: w.status}, nil
}

// tell runs the hooks of a durable write. No lock is held.
func (m *Manager) tell(w *write) {
	if hook := m.opts.Hooks.ContainerTerminated; hook != nil {
		for _, t := range w.terminated {
			hook(w.event.UID, t)
		}
	}
	m.notifier.drain()
}

// request is an update of a whole status, with the pod it is for.
type request struct {
	uid    types.UID // under which the status is stored
	pod    *v1.Pod   // the pod the node runs: a mirror is translated
	object rememberedPod
	static bool
}

// identify finds out which pod a call is about (SEMANTICS 1-4).
func (m *Manager) identify(pod *v1.Pod) (request, error) {
	if err := checkIdentity(pod); err != nil {
		return request{}, err
	}
	if podstatus.IsMirror(pod) {
		m.memory.mirror(pod)
		source := m.pods.ResolveUID(pod.UID)
		static, ok := m.pods.PodByUID(source)
		if source == pod.UID || !ok {
			return request{}, fmt.Errorf("static pod of mirror pod %s/%s: %w", pod.Namespace, pod.Name, ErrUnknownPod)
		}
		pod = static
	}
	object, err := m.memory.remember(pod)
	if err != nil {
		return request{}, err
	}
	return request{uid: pod.UID, pod: pod, object: object, static: podstatus.IsStatic(pod)}, nil
}

// previous chooses the status that an update follows (SEMANTICS 8).
func (m *Manager) previous(r request, entry *projection.Entry) (status *v1.PodStatus, cached bool) {
	if entry != nil {
		return entry.Status, true
	}
	if mirror, ok := m.pods.MirrorPod(r.uid); ok {
		return &mirror.Status, false
	}
	return &r.pod.Status, false
}

// event is what all events about a pod have in common.
func (r request) event(reason journal.Reason) journal.Event {
	return journal.Event{
		Kind: journal.KindSet, UID: r.uid, Namespace: r.pod.Namespace, Name: r.pod.Name, Reason: reason,
	}
}

// record journals a rejected event. The refusal stands whether or not it can be
// recorded, so nobody waits for a slow disk longer than ctx says.
func (m *Manager) record(ctx context.Context, e journal.Event) {
	_, _ = detached(ctx, func() (struct{}, error) {
		if _, err := m.journal.Append(context.WithoutCancel(ctx), e); err != nil && !errors.Is(err, journal.ErrClosed) {
			m.log.Warn("rejected event is not journalled", logkey.UID, e.UID, logkey.Namespace, e.Namespace, logkey.Name, e.Name, logkey.Err, err)
			m.rejections.clear(e.UID)
		}
		return struct{}{}, nil
	})
}

// reject reports a refused update (SEMANTICS 55): the caller gets the error, the
// journal a rejected event. Update is the call's reason.
func (m *Manager) reject(ctx context.Context, r request, entry *projection.Entry, update journal.Reason, refused error) error {
	transition, ok := errors.AsType[*podstatus.TransitionError](refused)
	if !ok {
		return refused
	}
	m.rejections.count()
	var version journal.Version
	if entry != nil {
		version = entry.Version
	}
	if m.rejections.isNew(r.uid, version, transition) {
		e := r.event(update)
		e.Kind = journal.KindRejected
		e.Attributes = map[string]string{journal.AttrMessage: transition.Reason, journal.AttrFrom: transition.From, journal.AttrTo: transition.To}
		if transition.Container != "" { // else the pod's phase is what was refused
			e.Attributes[journal.AttrContainer] = transition.Container
		}
		m.record(ctx, e)
	}
	return fmt.Errorf("status of pod %s/%s: %w", r.pod.Namespace, r.pod.Name, refused)
}
