// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
)

// TestRun stores without a cluster, and has all of it after a restart.
func TestRun(t *testing.T) {
	dir := shortDir(t)
	r := start(t, configFor(dir))
	r.logged("journal opened")
	r.logged("no API server is configured")
	r.set(newPod(0, message("one")))
	s := r.status()
	if s.Node != "node-1" || s.Mode != "manage" || s.Software != "statusstore v0.0.1" || s.Syncing || s.Pods != 1 || s.Pending != 1 {
		t.Errorf("got %+v", s)
	}
	r.stop()
	r = start(t, configFor(dir))
	if got := r.get(newPod(0)); got.Status.Message != "one" {
		t.Errorf("after the restart: got %q", got.Status.Message)
	}
	if s := r.status(); s.Epoch != 2 || s.UncleanStart {
		t.Errorf("got %+v", s)
	}
}

// TestStop_EndsStreams has watchers that never leave by themselves.
func TestStop_EndsStreams(t *testing.T) {
	r := start(t, configFor(shortDir(t)))
	var bodies []*http.Response
	for _, path := range []string{"/api/v1/pods?watch=1", httpapi.PathEvents + "?follow=true"} {
		resp, err := r.client.Get("http://statusstore" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		bodies = append(bodies, resp)
	}
	if took := r.stop(); took > slack*2*time.Second {
		t.Errorf("the end took %v", took)
	}
	for _, resp := range bodies {
		for {
			if _, err := resp.Body.Read(make([]byte, 4096)); err != nil {
				if !strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "unexpected") {
					t.Errorf("the stream ended with %v, want an end in order", err)
				}
				break
			}
		}
	}
}

func failed(p *v1.Pod) { p.Status.Phase = v1.PodFailed }

// C41: stops with statuses that were not sent.
func TestC41(t *testing.T) {
	const pods = 20
	var live []*v1.Pod
	for i := range pods {
		live = append(live, newPod(i))
	}
	delivered := func(api *fakeapi.Server) (n int) {
		for _, pod := range api.Pods() {
			if pod.Status.Phase == v1.PodFailed {
				n++
			}
		}
		return n
	}
	setAll := func(r *running) {
		for i := range pods {
			r.set(newPod(i, failed))
		}
	}
	patches := fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}

	t.Run("slow", func(t *testing.T) {
		api, kubeconfig := newAPI(t, live...)
		api.Inject(fakeapi.Fault{Match: patches, Latency: 100 * time.Millisecond})
		c := configFor(shortDir(t))
		c.Kubeconfig = kubeconfig
		r := start(t, c)
		eventually(t, 5*time.Second, func() bool { return r.status().LiveSynced })
		setAll(r)
		if took := r.stop(); took > slack*5*time.Second {
			t.Errorf("the end took %v", took)
		}
		if n := delivered(api); n != pods {
			t.Errorf("got %d delivered, want %d", n, pods)
		}
		if requests := api.Requests(fakeapi.Match{}); len(requests) == 0 || requests[0].UserAgent != "statusstore/v0.0.1" {
			t.Errorf("got requests %+v, want them to say who asks", requests[:min(1, len(requests))])
		}
	})
	t.Run("hangs", func(t *testing.T) {
		api, kubeconfig := newAPI(t, live...)
		api.Inject(fakeapi.Fault{Match: patches, Effect: fakeapi.Hang})
		c := configFor(shortDir(t))
		c.Kubeconfig, c.DrainTimeout = kubeconfig, time.Second
		r := start(t, c)
		setAll(r)
		if took := r.stop(); took > 8*time.Second {
			t.Errorf("the end took %v", took)
		}
		r.logged("not everything was sent")
		api.ClearFaults()
		r = start(t, c)
		eventually(t, 10*time.Second, func() bool { return delivered(api) == pods && r.status().Pending == 0 })
	})
}

// C18: starts while the API server is away.
func TestC18(t *testing.T) {
	api, kubeconfig := newAPI(t, newPod(0))
	c := configFor(shortDir(t))
	c.Kubeconfig, c.DrainTimeout = kubeconfig, 100*time.Millisecond
	r := start(t, c)
	r.set(newPod(0, message("stored")))
	eventually(t, 10*time.Second, func() bool { return r.status().Pending == 0 })
	r.stop()
	api.NetworkDown()
	began := time.Now()
	r = start(t, c)
	if got := r.get(newPod(0)); got.Status.Message != "stored" {
		t.Errorf("got %q", got.Status.Message)
	}
	if took := time.Since(began); took > slack*2*time.Second {
		t.Errorf("the answer took %v", took)
	}
	r.set(newPod(0, message("while away")))
	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() bool { return r.status().Pending == 0 })
	if pod, _ := api.Pod("default", "web-0"); pod.Status.Message != "while away" {
		t.Errorf("the API server has %q", pod.Status.Message)
	}
}

// TestStatus_ServerAway tells of a server that can't be reached, though nothing has
// to be sent, and that it is fine again.
func TestStatus_ServerAway(t *testing.T) {
	for _, mode := range []Mode{ModeManage, ModeRecord} {
		t.Run(string(mode), func(t *testing.T) {
			api, kubeconfig := newAPI(t)
			api.NetworkDown()
			c := configFor(shortDir(t))
			c.Kubeconfig, c.Mode = kubeconfig, mode
			r := start(t, c)
			eventually(t, 10*time.Second, func() bool {
				s := r.status()
				return !s.LiveSynced && s.ServerFailing && s.LastSyncError != "" && s.LastSyncErrorTime != nil
			})
			if err := api.NetworkUp(); err != nil {
				t.Fatal(err)
			}
			eventually(t, 20*time.Second, func() bool { s := r.status(); return s.LiveSynced && !s.ServerFailing })
			api.NetworkDown()
			eventually(t, 20*time.Second, func() bool { return r.status().ServerFailing })
		})
	}
}

// TestOtherPodLive has another pod under the name on the API server.
func TestOtherPodLive(t *testing.T) {
	_, kubeconfig := newAPI(t, newPod(0))
	c := configFor(shortDir(t))
	c.Kubeconfig = kubeconfig
	r := start(t, c)
	eventually(t, 10*time.Second, func() bool { return r.status().LiveSynced })
	other := newPod(0, func(p *v1.Pod) { p.UID = "uid-other" })
	if code, body, err := r.try(http.MethodPut, httpapi.PodStatusPath(other.Namespace, other.Name), other); err != nil || code != http.StatusConflict {
		t.Errorf("got %d %v: %s, want 409", code, err, body)
	}
	if len(r.events()) != 0 {
		t.Error("it was stored")
	}
	r.set(newPod(0))
}

// TestRecord journals what the API server shows, each change once, and writes
// nothing back.
func TestRecord(t *testing.T) {
	api, kubeconfig := newAPI(t, newPod(0, message("one")), newPod(1, message("one")))
	c := configFor(shortDir(t))
	c.Kubeconfig, c.Mode = kubeconfig, ModeRecord
	r := start(t, c)
	recorded := func(want ...string) func() bool {
		return func() bool {
			var got []string
			for _, e := range r.events() {
				if e.UID != "uid-0" {
					continue
				}
				text := string(e.Kind) + " " + string(e.Reason)
				if e.Status != nil {
					text += " " + e.Status.Message
				}
				got = append(got, text)
			}
			if strings.Join(got, ",") == strings.Join(want, ",") {
				return true
			}
			t.Logf("recorded so far: %q", got)
			return false
		}
	}
	observe := func(text string) {
		t.Helper()
		if err := api.Mutate("default", "web-0", func(p *v1.Pod) { p.Status.Message = text }); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 10*time.Second, recorded("set observed one"))
	observe("two")
	observe("three")
	eventually(t, 10*time.Second, recorded("set observed one", "set observed two", "set observed three"))
	if s := r.status(); s.Mode != "record" || !s.Syncing || s.Pending != 0 || s.Pods != 2 {
		t.Errorf("got %+v", s)
	}
	if code, _, err := r.try(http.MethodPut, httpapi.PodStatusPath("default", "web-0"), newPod(0)); err != nil || code != http.StatusMethodNotAllowed {
		t.Errorf("set in record mode: got %d, %v, want 405", code, err)
	}
	r.stop()

	observe("four") // while the agent is away
	if err := api.Remove("default", "web-1"); err != nil {
		t.Fatal(err)
	}
	r = start(t, c)
	eventually(t, 10*time.Second, recorded("set observed one", "set observed two", "set observed three", "set observed four"))
	eventually(t, 10*time.Second, func() bool { return r.status().Pods == 1 })
	if err := api.Remove("default", "web-0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, recorded("set observed one", "set observed two", "set observed three", "set observed four", "removed deleted"))
	for _, request := range api.Requests(fakeapi.Match{}) {
		if request.Verb != fakeapi.List && request.Verb != fakeapi.Watch {
			t.Errorf("record mode sent %+v", request)
		}
	}
}

func TestUserAgent(t *testing.T) {
	for software, want := range map[string]string{
		"": "statusstore/devel", "v1.2.3": "statusstore/v1.2.3", "statusstore v1.2.3": "statusstore/v1.2.3", "statusstore v1 (x)": "statusstore/v1-(x)",
	} {
		if got := userAgent(software); got != want {
			t.Errorf("%q: got %q, want %q", software, got, want)
		}
	}
}
