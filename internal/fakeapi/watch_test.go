// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

func TestWatch_Bookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		put(t, server, newPod("a"))
		w, err := client(t, server).CoreV1().Pods("other").Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		defer w.Stop()
		start := time.Now()
		newest := put(t, server, newPod("b")) // not in the watched namespace
		event := <-w.ResultChan()
		pod, ok := event.Object.(*corev1.Pod)
		if event.Type != watch.Bookmark || !ok || pod.ResourceVersion != newest.ResourceVersion || len(pod.Annotations) != 0 {
			t.Errorf("event is %s %v, want a bookmark at %s", event.Type, event.Object, newest.ResourceVersion)
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("it came after %v, want 1m", waited)
		}
	})
}

func TestWatch_EndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		w, err := client(t, server).CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		start := time.Now()
		for event := range w.ResultChan() {
			t.Errorf("event %s", event.Type)
		}
		if lasted := time.Since(start); lasted < minWatchTime || lasted > 2*minWatchTime {
			t.Errorf("watch lasted %v, want %v to %v", lasted, minWatchTime, 2*minWatchTime)
		}
	})
}

func TestWatch_ExpiresOutsideWindow(t *testing.T) {
	server := listen(t, Options{EventWindow: 10})
	old := put(t, server, newPod("a"))
	for i := range 25 {
		if err := server.SetLabel(ns, "a", "n", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	pods := client(t, server).CoreV1().Pods(ns)
	if got := firstEvent(t, server, old.ResourceVersion); got.Type != watch.Error {
		t.Fatalf("event is %s, want ERROR", got.Type)
	} else {
		wantCode(t, apierrors.FromObject(got.Object), http.StatusGone, metav1.StatusReasonExpired)
	}
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	if err := server.SetLabel(ns, "a", "n", "last"); err != nil {
		t.Fatal(err)
	}
	if got := firstEvent(t, server, list.ResourceVersion); got.Type != watch.Modified {
		t.Errorf("event is %s, want MODIFIED", got.Type)
	}
}

func firstEvent(t *testing.T, server *Server, version string) watch.Event {
	t.Helper()
	w, err := client(t, server).CoreV1().Pods(ns).Watch(within(t), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer w.Stop()
	event, ok := <-w.ResultChan()
	if !ok {
		t.Fatal("watch ends without an event")
	}
	return event
}

func TestWatch_SeesEachCommitOnce(t *testing.T) {
	const writers, writes = 8, 50
	server := listen(t, Options{})
	pod := put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)
	w, err := pods.Watch(within(t), metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer w.Stop()

	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range writes {
				if err := patchMessage(t.Context(), pods, "a", fmt.Sprintf("%d/%d", i, j)); err != nil {
					t.Errorf("patch: %v", err)
				}
			}
		})
	}
	last := pod.ResourceVersion
	for range writers * writes {
		event, ok := <-w.ResultChan()
		if !ok {
			t.Fatal("watch has ended")
		}
		got := event.Object.(*corev1.Pod).ResourceVersion
		if next := nextVersion(t, last); got != next {
			t.Fatalf("version %s after %s", got, last)
		}
		last = got
	}
	wg.Wait()
	if got := len(server.StatusHistory(pod.UID)); got != writers*writes {
		t.Errorf("%d statuses in the history, want %d", got, writers*writes)
	}
}

func nextVersion(t *testing.T, version string) string {
	t.Helper()
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.FormatUint(n+1, 10)
}

// An informer has to come out right whatever happens to its watch.
func TestInformer_SurvivesOutages(t *testing.T) {
	server := listen(t, Options{EventWindow: 10})
	put(t, server, newPod("stays"))
	put(t, server, newPod("goes"))
	store := runInformer(t, server)
	waitForKeys(t, store, "default/goes", "default/stays")
	if got := server.Count(List); got != 0 {
		t.Errorf("%d LIST requests, want the informer to stream", got)
	}

	server.NetworkDown()
	if err := server.Remove(ns, "goes"); err != nil {
		t.Fatal(err)
	}
	put(t, server, newPod("comes"))
	server.ForgetEvents()
	if err := server.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	waitForKeys(t, store, "default/comes", "default/stays")
}

func runInformer(t *testing.T, server *Server) cache.Store {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client(t, server), 0)
	informer := factory.Core().V1().Pods().Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(within(t).Done(), informer.HasSynced) {
		t.Fatal("informer doesn't sync")
	}
	return informer.GetStore()
}

func waitForKeys(t *testing.T, store cache.Store, want ...string) {
	t.Helper()
	ctx := within(t)
	for {
		keys := store.ListKeys()
		if sameSet(keys, want) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("informer has %v, want %v", keys, want)
		}
	}
}

func sameSet(a, b []string) bool {
	in := map[string]bool{}
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if !in[s] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestInformer_WithoutStreaming(t *testing.T) {
	server := listen(t, Options{})
	for i := range 1200 { // more than two pages of a reflector
		put(t, server, newPod(fmt.Sprintf("pod-%04d", i)))
	}
	// A server of old refuses initial events; the reflector then lists.
	server.Inject(Fault{Match: Match{Verbs: []Verb{Watch}}, Code: http.StatusUnprocessableEntity, Times: 1})
	store := runInformer(t, server)
	if got := len(store.ListKeys()); got != 1200 {
		t.Errorf("informer has %d pods, want 1200", got)
	}
	if got := server.Count(List); got == 0 {
		t.Error("no LIST request")
	}
}

func TestWatch_TruncatedIsAnError(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	server.Inject(Fault{Match: Match{Verbs: []Verb{Watch}}, Effect: Truncate, Times: 1})
	w, err := client(t, server).CoreV1().Pods(ns).Watch(within(t), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Added {
			t.Error("the cut event arrived whole")
		}
	}
}

func TestWait(t *testing.T) {
	server := listen(t, Options{})
	var wg sync.WaitGroup
	wg.Go(func() { put(t, server, newPod("a")) })
	pod, err := server.Wait(within(t), ns, "a", func(pod *corev1.Pod) bool { return pod != nil })
	if err != nil || pod.Name != "a" {
		t.Errorf("pod %v, error %v", pod, err)
	}
	wg.Wait()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Wait(within(t), ns, "b", func(pod *corev1.Pod) bool { return pod != nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v, want ErrClosed", err)
	}
}
