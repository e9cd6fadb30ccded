// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// server is an API server that knows of pods and of nothing else. It is reached without a
// network, so tests that use it can run on a clock of their own.
type server struct {
	// mu guards the fields below.
	mu      sync.Mutex
	away    chan struct{} // closed while nobody is there
	silent  bool          // a PATCH gets no answer
	pods    map[string]*v1.Pod
	events  []metav1.WatchEvent // its number in here, from 1, is a pod's resource version
	changed chan struct{}       // closed at the next event
	writes  []write
}

// write is a request that changed a pod.
type write struct {
	at                  time.Time
	agent, method, name string
	status              v1.PodStatus // that the pod has now
}

func newServer() *server {
	return &server{away: make(chan struct{}), changed: make(chan struct{}), pods: make(map[string]*v1.Pod)}
}

func (s *server) config() *rest.Config { return &rest.Config{Host: "http://server", Transport: s} }

// leave cuts all watches and refuses requests, until comeBack.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.away)
}

func (s *server) comeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = make(chan struct{})
}

func (s *server) setSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// create makes pods be there.
func (s *server) create(pods ...*v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range pods {
		s.put(watch.Added, pod.DeepCopy())
	}
}

// put keeps a pod, which nobody changes from now on, and tells the watches. s.mu is held.
func (s *server) put(kind watch.EventType, pod *v1.Pod) {
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.ResourceVersion = strconv.Itoa(len(s.events) + 1)
	s.pods[pod.Name] = pod
	s.events = append(s.events, metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: pod}})
	close(s.changed)
	s.changed = make(chan struct{})
}

// get returns a pod, which must not be changed.
func (s *server) get(name string) *v1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name]
}

// takeWrites returns what was written since the last call.
func (s *server) takeWrites() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	away := s.away
	s.mu.Unlock()
	select {
	case <-away:
		return nil, errors.New("connection refused")
	default:
	}
	mux := http.NewServeMux() // what it doesn't have is not found
	mux.HandleFunc("GET /api/v1/pods", s.list)
	mux.HandleFunc("POST /api/v1/namespaces/default/events", accept)
	mux.HandleFunc("PATCH /api/v1/namespaces/default/pods/{name}/status", s.patch)
	mux.HandleFunc("PUT /api/v1/namespaces/default/pods/{name}/status", s.refuse)
	mux.HandleFunc("DELETE /api/v1/namespaces/default/pods/{name}", s.refuse)
	if r.URL.Query().Has("watch") && !r.URL.Query().Has("sendInitialEvents") {
		return s.watch(r, away)
	}
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // to memory
}

// accept answers with what it was sent.
func accept(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.Copy(w, r.Body) // to memory
}

// list answers with all pods; one node has them all. A watch that is to begin with a list
// is refused, and the client lists.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	list.ResourceVersion = strconv.Itoa(len(s.events))
	for _, pod := range s.pods {
		list.Items = append(list.Items, *pod)
	}
	reply(w, http.StatusOK, list)
}

// watch streams what happens until the client goes or the server is away.
func (s *server) watch(r *http.Request, away <-chan struct{}) (*http.Response, error) {
	sent, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		return nil, err
	}
	body, stream := io.Pipe()
	go func() {
		defer stream.Close()
		for {
			s.mu.Lock()
			events, changed := s.events[sent:], s.changed
			s.mu.Unlock()
			for _, e := range events {
				if json.NewEncoder(stream).Encode(e) != nil {
					return // the client is gone
				}
			}
			sent += len(events)
			select {
			case <-changed:
			case <-away:
				return
			case <-r.Context().Done():
				return
			}
		}
	}()
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, Request: r}, nil
}

// patch changes a pod's status. If the server is silent, it leaves the client alone.
func (s *server) patch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if silent {
		<-r.Context().Done()
		return
	}
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		reply(w, http.StatusBadRequest, nil)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pod, err := patched(s.pods[r.PathValue("name")], patch)
	if err != nil {
		reply(w, http.StatusUnprocessableEntity, nil)
		return
	}
	s.writes = append(s.writes, write{at: time.Now(), agent: r.UserAgent(), method: r.Method, name: pod.Name, status: pod.Status})
	s.put(watch.Modified, pod)
	reply(w, http.StatusOK, pod)
}

// patched returns a new pod.
func patched(pod *v1.Pod, patch []byte) (*v1.Pod, error) {
	before, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, v1.Pod{})
	if err != nil {
		return nil, err
	}
	pod = new(v1.Pod)
	return pod, json.Unmarshal(after, pod)
}

// refuse notes what nobody should ask for.
func (s *server) refuse(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write{at: time.Now(), agent: r.UserAgent(), method: r.Method, name: r.PathValue("name")})
	reply(w, http.StatusForbidden, nil)
}
