// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// C40: some servers and proxies send nothing else.
func TestC40_RetryAfterIsAlsoAHeader(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"slow down","reason":"TooManyRequests","code":429}`
	for name, answer := range map[string]struct{ kind, body string }{
		"status without details": {"application/json", status},
		"plain text":             {"text/plain", "slow down"},
		"nothing":                {"text/plain", ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				w.Header().Set("Content-Type", answer.kind)
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
				fmt.Fprint(w, answer.body)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = requests{client: client, timeout: 30 * time.Second}.patch(t.Context(), newPod("web-0", "uid-a"), []byte(`{}`))
			if err == nil {
				t.Fatal("no error")
			}
			o := classify(t.Context(), err)
			if o.class != classThrottled || o.retryAfter != 7*time.Second {
				t.Errorf("class %d, retry after %s, from %v", o.class, o.retryAfter, err)
			}
			if calls != 1 || time.Since(start) > 5*time.Second {
				t.Errorf("%d calls in %s, want 1 at once", calls, time.Since(start))
			}
		})
	}
}

// TestOverTCP is one round over real sockets and in real time.
func TestOverTCP(t *testing.T) {
	api, err := fakeapi.Listen(fakeapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	client, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	many(100, func(_ int, pod *v1.Pod) {
		if _, err := api.Put(pod); err != nil {
			t.Fatal(err)
		}
		m.set(pod, running(1))
	})
	live := NewLivePods(client, node, LiveOptions{})
	s, err := New(Options{Client: client, Live: live, Entries: m, Acks: m, Drops: m, Changes: m})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{live.Run, s.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
	defer running.Wait()
	defer cancel()
	limited, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	if err := s.Drain(limited); err != nil {
		t.Error(err)
	}
	many(100, func(_ int, pod *v1.Pod) {
		if e, _ := m.Get(pod.UID); e.Acked != 1 || e.AckedUID != pod.UID {
			t.Errorf("%s: acked %d by %s", pod.Name, e.Acked, e.AckedUID)
		}
	})
	if n := api.Count(fakeapi.Patch); n != 100 {
		t.Errorf("%d PATCHes, want 100", n)
	}
	if n := api.Count(fakeapi.Get); n != 0 {
		t.Errorf("%d GETs", n)
	}
}
