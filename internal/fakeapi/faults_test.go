// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFault_Codes(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)
	for code, reason := range map[int]metav1.StatusReason{
		http.StatusForbidden:           metav1.StatusReasonForbidden,
		http.StatusNotFound:            metav1.StatusReasonNotFound,
		http.StatusConflict:            metav1.StatusReasonConflict,
		http.StatusGone:                metav1.StatusReasonExpired,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError,
		http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	} {
		fault := server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Code: code, Times: 1})
		wantCode(t, patchMessage(t.Context(), pods, "a", "m"), int32(code), reason)
		if got := fault.Hits(); got != 1 {
			t.Errorf("code %d: %d hits, want 1", code, got)
		}
		fault.Remove()
	}
	if got := message(t, server, "a"); got != "" {
		t.Errorf("message is %q, want none of the patches stored", got)
	}
}

func TestFault_Matching(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	put(t, server, newPod("b"))
	pods := client(t, server).CoreV1().Pods(ns)
	fault := server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}, Name: "a", Subresource: "status"}, Code: http.StatusUnprocessableEntity, Times: 2})

	for range 2 {
		wantCode(t, patchMessage(t.Context(), pods, "a", "m"), http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}
	if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("get of a: %v", err)
	}
	for _, name := range []string{"b", "a"} { // a again: both times are used up
		if err := patchMessage(t.Context(), pods, name, "m"); err != nil {
			t.Errorf("patch of %s: %v", name, err)
		}
	}
	if got := fault.Hits(); got != 2 {
		t.Errorf("%d hits, want 2", got)
	}
	server.Inject(Fault{Code: http.StatusForbidden})
	wantCode(t, patchMessage(t.Context(), pods, "b", "m"), http.StatusForbidden, metav1.StatusReasonForbidden)
	server.ClearFaults()
	if err := patchMessage(t.Context(), pods, "b", "m"); err != nil {
		t.Errorf("patch after clearing: %v", err)
	}
}

// A client that isn't told otherwise waits and repeats by itself.
func TestFault_RetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		put(t, server, newPod("a"))
		server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Code: http.StatusTooManyRequests, RetryAfter: 3 * time.Second, Times: 1})
		if err := patchMessage(t.Context(), client(t, server).CoreV1().Pods(ns), "a", "m"); err != nil {
			t.Fatalf("patch: %v", err)
		}
		requests := server.Requests(Match{Verbs: []Verb{Patch}})
		if len(requests) != 2 || requests[0].Code != http.StatusTooManyRequests || requests[1].Code != http.StatusOK {
			t.Fatalf("requests: %+v, want one 429 and one 200", requests)
		}
		if gap := requests[1].At.Sub(requests[0].At); gap != 3*time.Second {
			t.Errorf("the second came after %v, want 3s", gap)
		}
	})
}

func TestFault_Latency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		put(t, server, newPod("a"))
		put(t, server, newPod("b"))
		pods := client(t, server).CoreV1().Pods(ns)
		server.Inject(Fault{Match: Match{Name: "a"}, Latency: 500 * time.Millisecond})

		start := time.Now()
		if err := patchMessage(t.Context(), pods, "b", "m"); err != nil || time.Since(start) != 0 {
			t.Errorf("patch of b: %v after %v, want success at once", err, time.Since(start))
		}
		if err := patchMessage(t.Context(), pods, "a", "m"); err != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("patch of a: %v after %v, want success after 500ms", err, time.Since(start))
		}
	})
}

func TestFault_HangUntilClientGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		put(t, server, newPod("a"))
		pods := client(t, server).CoreV1().Pods(ns)
		server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Effect: Hang})

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := patchMessage(ctx, pods, "a", "m"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("patch: %v, want a deadline exceeded", err)
		}
		if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Errorf("get: %v", err)
		}
		if requests := server.Requests(Match{Verbs: []Verb{Patch}}); len(requests) != 1 || requests[0].Code != 0 {
			t.Errorf("requests: %+v, want one without an answer", requests)
		}
		if got := message(t, server, "a"); got != "" {
			t.Errorf("message is %q, want nothing stored", got)
		}
	})
}

func TestFault_HangUntilRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		put(t, server, newPod("a"))
		fault := server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Effect: Hang})
		pods := client(t, server).CoreV1().Pods(ns)

		var wg sync.WaitGroup
		wg.Go(func() {
			if err := patchMessage(t.Context(), pods, "a", "m"); err != nil {
				t.Errorf("patch: %v", err)
			}
		})
		synctest.Wait()
		if got := message(t, server, "a"); got != "" {
			t.Errorf("message is %q while the request hangs", got)
		}
		fault.Remove()
		wg.Wait()
		if got := message(t, server, "a"); got != "m" {
			t.Errorf("message is %q, want m", got)
		}
	})
}

func TestFault_HangUntilClose(t *testing.T) {
	server := listen(t, Options{})
	fault := server.Inject(Fault{Effect: Hang})
	pods := client(t, server).CoreV1().Pods(ns)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
			t.Error("get has an answer, want a broken connection")
		}
	})
	for ctx := within(t); fault.Hits() == 0; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the request doesn't arrive")
		}
	}
	if err := server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestFault_AbortAndTruncate(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)

	server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Effect: Abort, Times: 1})
	if err := patchMessage(t.Context(), pods, "a", "aborted"); err == nil {
		t.Error("aborted patch succeeds")
	}
	if got := message(t, server, "a"); got != "" {
		t.Errorf("message is %q, want nothing stored", got)
	}

	server.Inject(Fault{Match: Match{Verbs: []Verb{Patch}}, Effect: Truncate, Times: 1})
	if err := patchMessage(t.Context(), pods, "a", "truncated"); err == nil {
		t.Error("truncated patch succeeds")
	}
	if got := message(t, server, "a"); got != "truncated" {
		t.Errorf("message is %q, want the patch stored", got)
	}
}
