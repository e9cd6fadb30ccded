// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/statusstore/statusstore/internal/logkey"
)

// listWatch is how the reflector asks the server.
type listWatch struct{ pods *LivePods }

// ListWithContext implements cache.ListerWithContext: one page of a LIST.
func (lw listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	l := lw.pods
	if !l.beginList() {
		return nil, context.Canceled
	}
	defer l.listing.Done()
	if o.Continue == "" {
		l.begun.Add(1)
	}
	if o.ResourceVersion == "0" {
		// "Any version" may be one from before our last run; see the package comment.
		o.ResourceVersion = ""
	}
	pods, err := l.list(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			l.noteError("list pods", err)
			l.report.warn("cannot list pods", logkey.Err, err)
		}
		return nil, err
	}
	l.noteError("", nil)
	l.watched.Store(false)
	l.lost.Store(false)
	return pods, nil
}

// beginList counts a LIST of the reflector, unless Run is about to end: the
// reflector may begin one when it has stopped waiting for it.
func (l *LivePods) beginList() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.listing.Add(1)
	return true
}

func (l *LivePods) list(ctx context.Context, o metav1.ListOptions) (*v1.PodList, error) {
	o.FieldSelector = l.selector()
	r := requests{client: l.client, timeout: l.options.RequestTimeout}
	pods := new(v1.PodList)
	err := r.limited(ctx, func(ctx context.Context) error {
		c, ok := r.rest()
		if !ok {
			var err error
			pods, err = l.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
			return err
		}
		return into(ctx, plain(c.Get().Resource("pods").VersionedParams(&o, scheme.ParameterCodec)), pods)
	})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		strip(&pods.Items[i])
	}
	return pods, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (lw listWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	l := lw.pods
	if err := l.checkResume(ctx, o.ResourceVersion); err != nil {
		return nil, err
	}
	w, err := l.watch(ctx, o)
	if err != nil {
		l.lost.Store(true)
		if ctx.Err() == nil {
			l.noteError("watch pods", err)
			l.report.warn("cannot watch pods", logkey.Err, err)
		}
		return nil, err
	}
	l.noteError("", nil)
	return w, nil
}

// checkResume makes sure that a watch may go on where the last one ended. A server
// that was restored from a backup accepts a resourceVersion of its lost future
// and then says nothing until it gets there. After a server that couldn't be
// reached it may even be there already, so then only a LIST is certain; else the
// server is asked whether it knows the version.
func (l *LivePods) checkResume(ctx context.Context, resourceVersion string) error {
	if !l.watched.Swap(true) {
		return nil
	}
	if l.lost.Load() {
		return apierrors.NewResourceExpired("the server was away, listing anew")
	}
	_, err := l.list(ctx, metav1.ListOptions{
		Limit: 1, ResourceVersion: resourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		l.lost.Store(true)
		if ctx.Err() == nil {
			l.noteError("resume watch", err)
		}
		return fmt.Errorf("resume watch: %w", err)
	}
	return nil
}

func (l *LivePods) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = l.selector()
	limited, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(l.options.RequestTimeout, func() { cancel(errWatchTimeout) })
	w, err := l.client.CoreV1().Pods(metav1.NamespaceAll).Watch(limited, o)
	if !timer.Stop() && err == nil {
		w.Stop()
		err = errWatchTimeout
	}
	if err != nil {
		if errors.Is(context.Cause(limited), errWatchTimeout) {
			err = errWatchTimeout
		}
		cancel(nil)
		return nil, err
	}
	return &endingWatch{Interface: w, end: func() { cancel(nil) }}, nil
}

func (l *LivePods) selector() string {
	if l.node == "" {
		return ""
	}
	return fields.OneTermEqualSelector("spec.nodeName", l.node).String()
}

// List implements cache.Lister; the reflector prefers ListWithContext.
func (lw listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher; the reflector prefers WatchWithContext.
func (lw listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), o)
}

// IsWatchListSemanticsUnSupported is client-go's way to ask for LIST + WATCH
// where a streaming list is the default; see the package comment.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

var _ cache.ListerWatcherWithContext = listWatch{}

// endingWatch releases the watch's context when it is stopped.
type endingWatch struct {
	watch.Interface
	end func()
}

// Stop implements watch.Interface.
func (w *endingWatch) Stop() {
	w.Interface.Stop()
	w.end()
}
