// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

var watchCases = []testCase{
	{"FromVersion", func(b *bench) {
		pod := b.create("a")
		w := b.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
		b.mustPatch(pod.Name, `{"status":{"phase":"Running"}}`)
		b.create("b")
		b.mustDelete(b.prefix+"b", grace(0))
		w.want("MODIFIED a Running", "ADDED b Pending", "MODIFIED b Pending", "DELETED b Pending")
	}},
	{"VersionsGrow", func(b *bench) {
		pod := b.create("a")
		w := b.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
		patched := b.mustPatch(pod.Name, `{"status":{"phase":"Running"}}`)
		b.mustDelete(pod.Name, grace(0))
		last := b.version(pod.ResourceVersion)
		for i := range 3 {
			got := w.next().Object.(*corev1.Pod)
			if version := b.version(got.ResourceVersion); version <= last {
				b.Errorf("event %d has version %d after %d", i, version, last)
			}
			if i == 0 && got.ResourceVersion != patched.ResourceVersion {
				b.Errorf("event has version %s, the patch gave %s", got.ResourceVersion, patched.ResourceVersion)
			}
			last = b.version(got.ResourceVersion)
		}
	}},
	{"WithoutVersionBeginsWithPods", func(b *bench) {
		b.create("a")
		w := b.watch(metav1.ListOptions{})
		w.want("ADDED a Pending")
		b.create("b")
		w.want("ADDED b Pending")
	}},
	{"PodsEnterAndLeaveSelection", func(b *bench) {
		pod := b.create("a")
		w := b.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion, FieldSelector: "status.phase=Running"})
		b.mustPatch(pod.Name, `{"status":{"message":"not selected"}}`)
		b.mustPatch(pod.Name, `{"status":{"phase":"Running"}}`)
		b.mustPatch(pod.Name, `{"status":{"message":"m"}}`)
		left := b.mustPatch(pod.Name, `{"status":{"phase":"Failed"}}`)
		b.mustPatch(pod.Name, `{"status":{"phase":"Running"}}`)
		w.want("ADDED a Running", "MODIFIED a Running")
		event := w.next()
		// What left is shown as it was last seen, with the version of the change.
		got, ok := event.Object.(*corev1.Pod)
		if event.Type != watch.Deleted || !ok || got.Status.Phase != corev1.PodRunning || got.ResourceVersion != left.ResourceVersion {
			b.Errorf("event is %s %+v, want DELETED with phase Running and version %s", event.Type, event.Object, left.ResourceVersion)
		}
		w.want("ADDED a Running")
	}},
	{"OneNode", func(b *bench) {
		first := b.create("a")
		w := b.watch(metav1.ListOptions{ResourceVersion: first.ResourceVersion, FieldSelector: "spec.nodeName=" + b.target.Node})
		b.create("b", unbound)
		b.create("c")
		w.want("ADDED c Pending")
	}},
	{"Timeout", func(b *bench) {
		pod := b.create("a")
		w := b.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion, TimeoutSeconds: new(int64(1))})
		if event, ok := w.maybe(); ok {
			b.Errorf("event is %s %v, want the end", event.Type, event.Object)
		}
	}},
	{"InitialEvents", func(b *bench) { b.checkInitialEvents(b.target.Config) }},
	{"InitialEventsInJSON", func(b *bench) {
		config := rest.CopyConfig(b.target.Config)
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
		b.checkInitialEvents(config)
	}},
	{"InitialEventsNeedMatch", func(b *bench) {
		_, err := b.pods.Watch(b.ctx, metav1.ListOptions{SendInitialEvents: new(true)})
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}},
	{"Expired", func(b *bench) {
		b.needsForgetting()
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"m"}}`)
		b.target.ForgetEvents()
		w := b.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
		event := w.next()
		if event.Type != watch.Error {
			b.Fatalf("event is %s, want ERROR", event.Type)
		}
		b.wantError(apierrors.FromObject(event.Object), http.StatusGone, metav1.StatusReasonExpired)
		if event, ok := w.maybe(); ok {
			b.Errorf("event after the error: %s", event.Type)
		}
	}},
	{"FutureVersionIsSilent", func(b *bench) {
		// So an informer doesn't notice that a server went back in time.
		w := b.watch(metav1.ListOptions{ResourceVersion: "9000000000", TimeoutSeconds: new(int64(2))})
		b.create("a")
		if event, ok := w.maybe(); ok {
			b.Errorf("event is %s %v, want the end", event.Type, event.Object)
		}
	}},
	{"FutureVersionOfInitialEvents", func(b *bench) {
		w := b.watch(metav1.ListOptions{
			ResourceVersion:      "9000000000",
			SendInitialEvents:    new(true),
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks:  true,
		})
		event := w.next()
		if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			b.Errorf("event is %s %v, want ERROR with cause %s", event.Type, err, metav1.CauseTypeResourceVersionTooLarge)
		}
	}},
	{"BadVersion", func(b *bench) {
		if w, err := b.pods.Watch(b.ctx, metav1.ListOptions{ResourceVersion: "x"}); err == nil {
			w.Stop()
			b.Error("no error for version x")
		}
	}},
}

// watcher reads the events of one watch.
type watcher struct {
	*bench
	watch.Interface
}

// watch watches this subtest's pods.
func (b *bench) watch(options metav1.ListOptions) watcher {
	b.Helper()
	return b.watchWith(b.target.Config, options)
}

func (b *bench) watchWith(config *rest.Config, options metav1.ListOptions) watcher {
	b.Helper()
	options.LabelSelector = b.label()
	w, err := clientFor(b.T, config).CoreV1().Pods(namespace).Watch(b.ctx, options)
	if err != nil {
		b.Fatalf("watch: %v", err)
	}
	b.Cleanup(w.Stop)
	return watcher{b, w}
}

func (w watcher) maybe() (watch.Event, bool) {
	w.Helper()
	select {
	case event, ok := <-w.ResultChan():
		return event, ok
	case <-time.After(patience / 2):
		w.Fatal("no event and no end")
		return watch.Event{}, false
	}
}

func (w watcher) next() watch.Event {
	w.Helper()
	event, ok := w.maybe()
	if !ok {
		w.Fatal("watch has ended")
	}
	return event
}

// want reads as many events as are given as "TYPE name phase".
func (w watcher) want(want ...string) {
	w.Helper()
	for i, line := range want {
		event := w.next()
		if got := w.line(event.Type, event.Object); got != line {
			w.Errorf("event %d is %q, want %q", i, got, line)
		}
	}
}

func (w watcher) line(kind watch.EventType, obj runtime.Object) string {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Sprintf("%s %T", kind, obj)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, strings.TrimPrefix(pod.Name, w.prefix), pod.Status.Phase))
}

// checkInitialEvents asks for a stream that begins with all pods, as
// reflectors do by default.
func (b *bench) checkInitialEvents(config *rest.Config) {
	b.Helper()
	b.create("a")
	newest := b.create("b")
	w := b.watchWith(config, metav1.ListOptions{
		SendInitialEvents:    new(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
	})
	seen := map[string]bool{}
	for range 2 {
		event := w.next()
		seen[w.line(event.Type, event.Object)] = true
	}
	if !seen["ADDED a Pending"] || !seen["ADDED b Pending"] {
		b.Errorf("initial events are %v, want a and b", seen)
	}
	event := w.next()
	bookmark, ok := event.Object.(*corev1.Pod)
	if event.Type != watch.Bookmark || !ok || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		b.Fatalf("event is %s %v, want the bookmark that ends the initial events", event.Type, event.Object)
	}
	if b.version(bookmark.ResourceVersion) < b.version(newest.ResourceVersion) {
		b.Errorf("bookmark has version %s, want at least %s", bookmark.ResourceVersion, newest.ResourceVersion)
	}
	b.mustPatch(newest.Name, `{"status":{"phase":"Running"}}`)
	w.want("MODIFIED b Running")
}
