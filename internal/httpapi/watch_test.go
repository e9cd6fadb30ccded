// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// stream is a watch that a test reads.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (s *store) watch(query string, headers ...string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://statusstore/api/v1/pods?watch=1"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("watch: %d %s", resp.StatusCode, body)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	return &stream{s.t, lines}
}

// next returns an event as "TYPE name uid message".
func (w *stream) next() string {
	w.t.Helper()
	kind, raw := w.raw()
	var pod v1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(strings.Join([]string{kind, pod.Name, string(pod.UID), pod.Status.Message}, " "))
}

func (w *stream) raw() (string, json.RawMessage) {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the watch ended: %v", w.lines.Err())
	}
	var e struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(w.lines.Bytes(), &e); err != nil {
		w.t.Fatalf("%v: %s", err, w.lines.Bytes())
	}
	return e.Type, e.Object
}

func (w *stream) want(events ...string) {
	w.t.Helper()
	for _, want := range events {
		if got := w.next(); got != want {
			w.t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", message("1")))
	s.mustSet(newPod("web-1", "uid-b", message("1")))
	s.mustSet(newPod("web-0", "uid-a", message("2")))

	initial := s.watch("")
	initial.want("ADDED web-0 uid-a 2", "ADDED web-1 uid-b 1")
	since := s.watch("&resourceVersion=2")
	since.want("ADDED web-1 uid-b 1", "MODIFIED web-0 uid-a 2")
	selected := s.watch("&labelSelector=app%3Dweb-1")
	selected.want("ADDED web-1 uid-b 1")
	running := s.watch("&fieldSelector=status.phase%3DRunning")
	running.want("ADDED web-0 uid-a 2", "ADDED web-1 uid-b 1")
	runningSince := s.watch("&resourceVersion=4&fieldSelector=status.phase%3DRunning")

	s.mustSet(newPod("web-1", "uid-b", message("end"), phase(v1.PodFailed)))
	if _, err := s.manager.RemoveOrphanedStatuses(t.Context(), sets.New[types.UID]("uid-b")); err != nil {
		t.Fatal(err)
	}
	s.mustSet(newPod("web-2", "uid-c"))
	for _, w := range []*stream{initial, since} {
		w.want("MODIFIED web-1 uid-b end", "DELETED web-0 uid-a 2", "ADDED web-2 uid-c")
	}
	selected.want("MODIFIED web-1 uid-b end")
	running.want("DELETED web-1 uid-b end", "DELETED web-0 uid-a 2", "ADDED web-2 uid-c")
	runningSince.want("DELETED web-1 uid-b end", "DELETED web-0 uid-a 2", "ADDED web-2 uid-c")
}

// TestWatch_RemovedOutsideSelector tells nothing of pods that never matched, and
// what a pod was like that did.
func TestWatch_RemovedOutsideSelector(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", message("a")))
	s.mustSet(newPod("web-1", "uid-b", message("b")))
	rv := fmt.Sprintf("&resourceVersion=%d", s.head())
	byLabel := s.watch(rv + "&labelSelector=app%3Dweb-1")
	byPhase := s.watch(rv + "&fieldSelector=status.phase%3DFailed")
	byName := s.watch(rv + "&fieldSelector=metadata.name%3Dweb-1")
	all := s.watch(rv)
	for _, uid := range []types.UID{"uid-a", "uid-b"} {
		if err := s.manager.Remove(t.Context(), uid, journal.ReasonDeleted); err != nil {
			t.Fatal(err)
		}
	}
	s.mustSet(newPod("web-1", "uid-c", message("c"), phase(v1.PodFailed)))
	byLabel.want("DELETED web-1 uid-b b", "ADDED web-1 uid-c c")
	byPhase.want("ADDED web-1 uid-c c")
	byName.want("DELETED web-1 uid-b b", "ADDED web-1 uid-c c")
	all.want("DELETED web-0 uid-a a", "DELETED web-1 uid-b b", "ADDED web-1 uid-c c")

	// Removed before the watch began: only the identity is left.
	s.watch(rv+"&fieldSelector=metadata.name%3Dweb-1").want("DELETED web-1 uid-b", "ADDED web-1 uid-c c")
	for _, selector := range []string{"&labelSelector=app%3Dweb-1", "&fieldSelector=status.phase%3DRunning"} {
		if kind, raw := s.watch(rv + selector).raw(); kind != "ERROR" || !strings.Contains(string(raw), `"code":410`) {
			t.Errorf("%s: got %s %s, want to list again", selector, kind, raw)
		}
	}
}

// TestWatch_Recreated shows the end of the old pod before the new one of its name.
func TestWatch_Recreated(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", message("old")))
	w := s.watch("")
	w.want("ADDED web-0 uid-a old")
	s.mustSet(newPod("web-0", "uid-b", message("new")))
	w.want("DELETED web-0 uid-a old", "ADDED web-0 uid-b new")
	if _, err := s.manager.RemoveOrphanedStatuses(t.Context(), sets.New[types.UID]("uid-a")); err != nil {
		t.Fatal(err)
	}
	w.want("DELETED web-0 uid-b new", "ADDED web-0 uid-a old") // as a list shows it
	if err := s.manager.Remove(t.Context(), "uid-a", journal.ReasonDeleted); err != nil {
		t.Fatal(err)
	}
	w.want("DELETED web-0 uid-a old")
}

func TestWatch_Bookmarks(t *testing.T) {
	s := newStore(t, func(_ *manager.Options, o *Options) { o.BookmarkInterval = 20 * time.Millisecond })
	s.mustSet(newPod("web-0", "uid-a"))
	w := s.watch("&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=app%3Dweb-0")
	w.want("ADDED web-0 uid-a")
	bookmark := func() v1.Pod {
		t.Helper()
		kind, raw := w.raw()
		var pod v1.Pod
		if err := json.Unmarshal(raw, &pod); err != nil || kind != "BOOKMARK" {
			t.Fatalf("got %s %s", kind, raw)
		}
		return pod
	}
	if pod := bookmark(); pod.Annotations[metav1.InitialEventsAnnotationKey] != "true" || pod.ResourceVersion != "2" {
		t.Errorf("got %+v", pod.ObjectMeta)
	}
	s.mustSet(newPod("web-1", "uid-b")) // not selected: only a bookmark tells
	if pod := bookmark(); pod.ResourceVersion != "3" || len(pod.Annotations) > 0 {
		t.Errorf("got %+v", pod.ObjectMeta)
	}
}

func TestWatch_Timeout(t *testing.T) {
	s := newStore(t)
	w := s.watch("&timeoutSeconds=1")
	if w.lines.Scan() || w.lines.Err() != nil {
		t.Errorf("got %q, %v, want an end in order", w.lines.Text(), w.lines.Err())
	}
}

func TestWatch_Table(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	w := s.watch("", "Accept", acceptTable)
	var table metav1.Table
	for i, columns := range []int{9, 0} {
		_, raw := w.raw()
		table = metav1.Table{}
		if err := json.Unmarshal(raw, &table); err != nil {
			t.Fatal(err)
		}
		if len(table.ColumnDefinitions) != columns || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "web-0" {
			t.Errorf("event %d: got %s", i, raw)
		}
		s.mustSet(newPod("web-0", "uid-a", message(fmt.Sprint("m", i))))
	}
}

// TestWatch_Expired asks for what retention has trimmed.
func TestWatch_Expired(t *testing.T) {
	s := newStore(t, func(o *manager.Options, _ *Options) { o.Retention = journal.Retention{MaxEvents: 20} })
	for i := range 200 {
		s.mustSet(newPod("web-0", "uid-a", message(fmt.Sprint(i))))
	}
	w := s.watch("&resourceVersion=5")
	kind, raw := w.raw()
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatal(err)
	}
	if kind != "ERROR" || status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired || status.Kind != "Status" {
		t.Errorf("got %s %s", kind, raw)
	}
	if w.lines.Scan() {
		t.Errorf("the watch went on: %s", w.lines.Text())
	}
	var list v1.PodList
	s.do(http.MethodGet, "/api/v1/pods", "").into(t, http.StatusOK, &list)
	s.watch("&resourceVersion=" + list.ResourceVersion)
}

// C47: lets clients of streams stop reading: they are cut off, and nobody else
// waits for them.
func TestC47(t *testing.T) {
	var metrics *Metrics
	s := newStore(t, func(_ *manager.Options, o *Options) {
		metrics = NewMetrics()
		o.Metrics, o.WriteTimeout = metrics, 300*time.Millisecond
	})
	for _, path := range []string{"/api/v1/pods?watch=1", PathEvents + "?follow=true"} {
		conn, err := net.Dial("unix", s.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 5*time.Second, func() bool {
		return requests(t, metrics, PathEvents) == 0 && gaugeValue(t, metrics, "statusstore_http_watches") == 1
	})
	slowest := time.Duration(0)
	cut := func() bool {
		return gaugeValue(t, metrics, "statusstore_http_watches") == 0 && requests(t, metrics, PathEvents) == 1
	}
	for i := 0; !cut(); i++ {
		begin := time.Now()
		pod := newPod("web-0", "uid-a", message(fmt.Sprint(i, strings.Repeat("x", 16<<10))))
		if _, err := s.manager.SetPodStatus(t.Context(), pod, pod.Status); err != nil {
			t.Fatal(err)
		}
		s.do(http.MethodGet, PodPath("default", "web-0"), "").into(t, http.StatusOK, nil)
		slowest = max(slowest, time.Since(begin))
		if i == 5000 {
			t.Fatal("the stuck clients are still there")
		}
	}
	if slowest > slack*2*time.Second {
		t.Errorf("a call took %v", slowest)
	}
}

func gathered(t *testing.T, m *Metrics, name string, count func(labels map[string]string, value float64)) {
	t.Helper()
	families, err := prometheus.Gatherers{m.registry}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, metric := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			count(labels, metric.GetGauge().GetValue()+metric.GetCounter().GetValue())
		}
	}
}

func gaugeValue(t *testing.T, m *Metrics, name string) (sum float64) {
	t.Helper()
	gathered(t, m, name, func(_ map[string]string, v float64) { sum += v })
	return sum
}

func requests(t *testing.T, m *Metrics, path string) (sum float64) {
	t.Helper()
	gathered(t, m, "statusstore_http_requests_total", func(labels map[string]string, v float64) {
		if labels["path"] == path {
			sum += v
		}
	})
	return sum
}

// TestClientGo uses the interface as client-go's clients and informers do.
func TestClientGo(t *testing.T) {
	for _, contentType := range []string{contentJSON, contentProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			s := newStore(t)
			config := &rest.Config{
				Host: "http://statusstore",
				Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					var d net.Dialer
					return d.DialContext(ctx, "unix", s.socket)
				},
			}
			config.ContentType, config.AcceptContentTypes = contentType, contentType
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			pods := client.CoreV1().Pods("default")
			if _, err := pods.UpdateStatus(t.Context(), newPod("web-0", "uid-a", message("one")), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}

			factory := informers.NewSharedInformerFactory(client, 0)
			informer := factory.Core().V1().Pods()
			deleted := make(chan string, 10)
			if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
				if pod, ok := obj.(*v1.Pod); ok {
					deleted <- pod.Name + " " + pod.Status.Message
				}
			}}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer factory.Shutdown()
			defer cancel()
			factory.Start(ctx.Done())
			if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
				t.Fatal("not synced")
			}
			shows := func(name, message string) func() bool {
				return func() bool {
					pod, err := informer.Lister().Pods("default").Get(name)
					return err == nil && pod.Status.Message == message
				}
			}
			eventually(t, 5*time.Second, shows("web-0", "one"))
			patch := `{"metadata":{"uid":"uid-a"},"status":{"message":"two"}}`
			if _, err := pods.Patch(t.Context(), "web-0", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, shows("web-0", "two"))
			if _, err := pods.UpdateStatus(t.Context(), newPod("web-1", "uid-b", message("new")), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, shows("web-1", "new"))
			if err := s.manager.Remove(t.Context(), "uid-a", journal.ReasonDeleted); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-deleted:
				if got != "web-0 two" {
					t.Errorf("got the end of %q", got)
				}
			case <-time.After(5 * time.Second):
				t.Error("the informer did not see the removal")
			}
			list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web-1", Limit: 5})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"default/web-1"}, names(*list)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			version, err := client.Discovery().ServerVersion()
			if err != nil || version.Major != "1" {
				t.Errorf("got %v, %v", version, err)
			}
			resources, err := client.Discovery().ServerResourcesForGroupVersion("v1")
			if err != nil || len(resources.APIResources) != 2 {
				t.Errorf("got %v, %v", resources, err)
			}
		})
	}
}
