// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

const mergePatch = "application/merge-patch+json"

// TestG9_NoStatus refuses what is no status, by PUT and by PATCH, and stores nothing.
func TestG9_NoStatus(t *testing.T) {
	tests := []struct {
		name string
		edit func(*v1.Pod)
		code int
		want string
	}{
		{"empty", func(p *v1.Pod) { p.Status = v1.PodStatus{} }, http.StatusUnprocessableEntity, "status: is empty"},
		{"unknown phase", phase("Bogus"), http.StatusUnprocessableEntity, "status.phase"},
		{"other case", phase("running"), http.StatusUnprocessableEntity, "status.phase"},
		{"too large", message(strings.Repeat("x", 1<<20)), http.StatusRequestEntityTooLarge, "would never take it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			head := s.head()
			body := jsonOf(t, newPod("web-0", "uid-a", tt.edit))
			for method, mediaType := range map[string]string{http.MethodPut: contentJSON, http.MethodPatch: mergePatch} {
				r := s.do(method, PodStatusPath("default", "web-0"), body, "Content-Type", mediaType)
				r.into(t, tt.code, nil)
				if !strings.Contains(string(r.body), tt.want) {
					t.Errorf("%s: got %.400s, want %q", method, r.body, tt.want)
				}
			}
			s.wantHead(head)
		})
	}
	t.Run("no phase", func(t *testing.T) {
		newStore(t).mustSet(newPod("web-0", "uid-a", phase("")))
	})
	t.Run("patch of the phase", func(t *testing.T) {
		s := newStore(t)
		s.mustSet(newPod("web-0", "uid-a"))
		s.do(http.MethodPatch, PodStatusPath("default", "web-0"), `{"status":{"phase":"Bogus"}}`, "Content-Type", mergePatch).
			into(t, http.StatusUnprocessableEntity, nil)
	})
}

// fakeLive is one pod on the API server.
type fakeLive struct {
	unsynced bool
	pod      *v1.Pod
	err      string
}

func (f *fakeLive) HasSynced() bool { return !f.unsynced }

func (f *fakeLive) Get(namespace, name string) (*v1.Pod, bool) {
	return f.pod, f.pod.Namespace == namespace && f.pod.Name == name
}

func (f *fakeLive) LastError() (string, time.Time) {
	if f.err == "" {
		return "", time.Time{}
	}
	return f.err, time.Unix(1_700_000_000, 0)
}

// TestPutStatus_OtherPodLive refuses a pod that can't be sent: the API server has
// another one under its name.
func TestPutStatus_OtherPodLive(t *testing.T) {
	created := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	at := func(age time.Duration) func(*v1.Pod) {
		return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(created.Add(age)) }
	}
	static := func(p *v1.Pod) { p.Annotations = map[string]string{podstatus.AnnotationSource: "file"} }
	mirror := func(p *v1.Pod) { p.Annotations = map[string]string{podstatus.AnnotationMirror: "x"} }
	tests := []struct {
		name  string
		live  fakeLive
		given *v1.Pod
		code  int
	}{
		{"the same", fakeLive{pod: newPod("web-0", "uid-a")}, newPod("web-0", "uid-a"), http.StatusOK},
		{"another", fakeLive{pod: newPod("web-0", "uid-b", at(0))}, newPod("web-0", "uid-a", at(0)), http.StatusConflict},
		{"another, age unknown", fakeLive{pod: newPod("web-0", "uid-b", at(0))}, newPod("web-0", "uid-a", func(p *v1.Pod) { p.CreationTimestamp = metav1.Time{} }), http.StatusConflict},
		{"older", fakeLive{pod: newPod("web-0", "uid-b", at(0))}, newPod("web-0", "uid-a", at(-time.Minute)), http.StatusConflict},
		{"recreated", fakeLive{pod: newPod("web-0", "uid-b", at(0))}, newPod("web-0", "uid-a", at(time.Minute)), http.StatusOK},
		{"other name", fakeLive{pod: newPod("web-1", "uid-b", at(0))}, newPod("web-0", "uid-a", at(0)), http.StatusOK},
		{"not listed yet", fakeLive{pod: newPod("web-0", "uid-b", at(0)), unsynced: true}, newPod("web-0", "uid-a", at(0)), http.StatusOK},
		{"static", fakeLive{pod: newPod("web-0", "uid-b", at(0), mirror)}, newPod("web-0", "uid-a", at(0), static), http.StatusOK},
		{"static, status alone", fakeLive{pod: newPod("web-0", "uid-b", at(0), mirror)}, newPod("web-0", "uid-a", at(0)), http.StatusOK},
	}
	for _, tt := range tests {
		for method, mediaType := range map[string]string{http.MethodPut: contentJSON, http.MethodPatch: mergePatch} {
			t.Run(tt.name+" "+method, func(t *testing.T) {
				s := newStore(t, func(_ *manager.Options, o *Options) { o.Live = &tt.live })
				head := s.head()
				r := s.do(method, PodStatusPath("default", "web-0"), jsonOf(t, tt.given), "Content-Type", mediaType)
				r.into(t, tt.code, nil)
				if tt.code != http.StatusOK {
					s.wantHead(head)
					if !strings.Contains(string(r.body), "uid-b") {
						t.Errorf("got %s, want it to name the live pod", r.body)
					}
				}
			})
		}
	}
}

// TestStatus_RecordMode has no syncer, but the API server's pods.
func TestStatus_RecordMode(t *testing.T) {
	live := fakeLive{pod: newPod("web-0", "uid-a"), err: "cannot list pods: refused"}
	s := newStore(t, func(_ *manager.Options, o *Options) { o.Syncing, o.Live = true, &live })
	var got Status
	s.do(http.MethodGet, PathStatus, "").into(t, http.StatusOK, &got)
	if !got.LiveSynced || !got.ServerFailing || got.LastSyncError != live.err || got.LastSyncErrorTime == nil {
		t.Errorf("got %+v", got)
	}
}

// TestBody_WrongType says what is wanted in words of JSON.
func TestBody_WrongType(t *testing.T) {
	r := newStore(t).do(http.MethodPost, ReadinessPath("uid-a"), `{"ready":"maybe","containerID":"x"}`)
	r.into(t, http.StatusBadRequest, nil)
	if !strings.Contains(string(r.body), "ready: want true or false, got a string") {
		t.Errorf("got %s", r.body)
	}
}
