// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// C11, C38: restart does not make pods unready; restart is silent when all is acked.
func TestC11_C38_SilentAfterRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(50, func(i int, pod *v1.Pod) {
			status := running(1)
			if i < 20 {
				never(pod)
				status = ended(v1.PodSucceeded, 0)
			}
			w.put(pod)
			w.memory.terminate(pod, status)
		})
		w.pause(5 * time.Second)
		if n, m := w.api.Count(fakeapi.Delete), len(w.memory.List()); n != 0 || m != 50 {
			t.Errorf("%d DELETEs, %d pods in the store before the restart; want 0 and 50", n, m)
		}
		w.restart()
		w.pause(15 * time.Second)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
	})
}

// C15: times survive a round trip.
func TestC15_TimesSurviveARoundTrip(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		status := running(1)
		start := metav1.NewTime(noon.Add(987654321))
		status.StartTime = &start
		setCondition(&status, v1.PodReady, v1.ConditionTrue, start)
		w.deliver(newPod("web-0", "uid-a"), status)
		w.pause(30 * time.Second)
		w.stop()
		w.start()
		w.pause(30 * time.Second)
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
	})
}

// C17: final status lost between crash and API outage.
func TestC17_FinalStatusAfterOutageAndRestart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := never(newPod("web-0", "uid-a"))
		w.deliver(pod, running(1))
		w.api.NetworkDown()
		w.memory.set(pod, ended(v1.PodFailed, 1))
		w.pause(20 * time.Second)
		w.stop()
		if err := w.api.NetworkUp(); err != nil {
			t.Fatal(err)
		}
		w.restart()
		w.pause(time.Second)
		if got := w.onServer("web-0"); got.Phase != v1.PodFailed || got.ContainerStatuses[0].State.Terminated.ExitCode != 1 {
			t.Errorf("status %+v", got)
		}
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
	})
}

// C30: somebody else changed the status in the API.
func TestC30_SomebodyElseChangedTheStatus(t *testing.T) {
	spoil := func(w *world) {
		err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) {
			setCondition(&pod.Status, v1.PodReady, v1.ConditionFalse, metav1.Now())
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	check := func(w *world) {
		w.t.Helper()
		if status := w.onServer("web-0"); !ready(&status) {
			w.t.Error("not repaired")
		}
		w.wantAcked("uid-a", 1)
	}
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.deliver(newPod("web-0", "uid-a"), running(1))
		spoil(w)
		w.pause(100 * time.Millisecond) // by the watch event, not by a pass
		check(w)

		w.stop()
		spoil(w)
		w.restart()
		w.pause(time.Second)
		check(w)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1, fakeapi.Patch: 1})
	})
}

// C30: somebody else changed the status in the API.
func TestC30_AFightWithAnotherWriterIsSlow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.deliver(newPod("web-0", "uid-a"), running(1))
		w.api.ResetRequests()
		for range 600 {
			err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) { pod.Status.Message = "mine" })
			if err != nil {
				t.Fatal(err)
			}
			w.pause(100 * time.Millisecond)
		}
		if n := w.api.Count(fakeapi.Patch); n < 5 || n > 12 {
			t.Errorf("%d PATCHes in a minute, want 5 to 12", n)
		}
		w.pause(15 * time.Second)
		if got := w.onServer("web-0").Message; got != "" {
			t.Errorf("message %q at the end", got)
		}
	})
}

// C31: 404 now, there later.
func TestC31_NotFoundNowThereLater(t *testing.T) {
	t.Run("hidden", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start()
			pod := newPod("web-0", "uid-a")
			w.deliver(pod, running(3))
			if err := w.api.Hide("default", "web-0"); err != nil {
				t.Fatal(err)
			}
			w.memory.set(pod, running(4))
			w.pause(40 * time.Second)
			if acked, version := w.acked("uid-a"); acked != 1 || version != 2 {
				t.Errorf("acked %d, version %d", acked, version)
			}
			if err := w.api.Unhide("default", "web-0"); err != nil {
				t.Fatal(err)
			}
			w.pause(100 * time.Millisecond) // at once: the watch shows it
			w.wantAcked("uid-a", 2)
			if failing := w.Failing(); len(failing) != 0 {
				t.Errorf("failing: %+v", failing)
			}
		})
	})
	t.Run("only requests say so", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start()
			pod := newPod("web-0", "uid-a")
			w.deliver(pod, running(3))
			fault := w.api.Inject(fakeapi.Fault{Match: about1("web-0"), Code: 404})
			w.memory.set(pod, running(4))
			w.pause(10 * time.Second)
			fault.Remove()
			w.pause(10 * time.Second)
			w.wantAcked("uid-a", 2)
		})
	})
}

// C32: 404 for ever.
func TestC32_NotFoundForEver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(3, func(i int, pod *v1.Pod) {
			w.put(pod)
			w.memory.set(pod, running(1))
		})
		w.pause(time.Second)
		// One is gone from the server, one only by its answers, one never was there.
		if err := w.api.Remove("default", "web-0"); err != nil {
			t.Fatal(err)
		}
		w.api.Inject(fakeapi.Fault{Match: about1("web-1"), Code: 404})
		lost := newPod("web-2", "uid-2")
		if err := w.api.Remove("default", "web-2"); err != nil {
			t.Fatal(err)
		}
		w.api.ResetRequests()
		many(2, func(i int, pod *v1.Pod) { w.memory.set(pod, running(2)) })
		w.memory.set(lost, running(2))
		healthy := newPod("healthy", "uid-h")
		w.put(healthy)
		for i := range int32(6) {
			e := w.memory.set(healthy, running(i))
			w.pause(2 * time.Second)
			w.wantAcked("uid-h", e.Version)
			w.pause(8 * time.Second)
		}
		for i := range 3 {
			name := fmt.Sprintf("web-%d", i)
			requests := w.api.Requests(about1(name))
			if n := len(requests); n < 3 || n > 10 {
				t.Errorf("%s: %d requests in a minute", name, n)
			}
			for j := 2; j < len(requests); j++ {
				if now, before := requests[j].At.Sub(requests[j-1].At), requests[j-1].At.Sub(requests[j-2].At); now <= before {
					t.Errorf("%s: gap %d is %s after %s", name, j, now, before)
				}
			}
		}
		many(3, func(i int, pod *v1.Pod) { w.memory.remove(pod.UID) })
		w.api.ResetRequests()
		w.pause(10 * time.Minute)
		if n := w.api.Count(fakeapi.Get, fakeapi.Patch); n != 0 {
			t.Errorf("%d requests for removed pods", n)
		}
	})
}

// C33: same name, different UID.
func TestC33_SameNameDifferentUID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.memory.set(never(newPod("web-0", "uid-a")), ended(v1.PodFailed, 1))
		next := newPod("web-0", "uid-b")
		w.put(next)
		w.pause(5 * time.Second)
		if n := w.api.Count(fakeapi.Patch); n != 0 {
			t.Errorf("%d PATCHes to uid-b", n)
		}
		w.memory.set(next, running(1))
		w.pause(2 * time.Second)
		w.wantAcked("uid-b", 1)
		for _, r := range w.api.Requests(about1("web-0", fakeapi.Patch)) {
			if !strings.Contains(string(r.Body), `"metadata":{"uid":"uid-b"}`) {
				t.Errorf("patch without UID: %s", r.Body)
			}
		}
		for _, change := range w.api.StatusHistory("uid-b") {
			if change.Status.Phase == v1.PodFailed {
				t.Error("uid-b has a status of uid-a")
			}
		}
		w.api.ResetRequests()
		w.pause(time.Minute)
		if n := w.api.Count(fakeapi.Get, fakeapi.Patch); n != 0 {
			t.Errorf("%d requests for uid-a", n)
		}
	})
}

// C34: nothing to say.
func TestC34_NothingToSay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		pod := newPod("web-0", "uid-a")
		server := pod.DeepCopy()
		server.Status = running(1)
		c, s := server.Status.Conditions, server.Status.ContainerStatuses
		c[0], c[1], s[0], s[1] = c[1], c[0], s[1], s[0]
		w.put(server)
		w.memory.set(pod, running(1))
		w.start()
		w.pause(30 * time.Second)
		w.wantAcked("uid-a", 1)
		w.wantCounts(map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1})
	})
}

// C35: change while a request is under way.
func TestC35_ChangeWhileARequestIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(func(o *Options) { o.PassInterval = time.Minute })
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		w.api.ResetRequests()
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Latency: 500 * time.Millisecond})
		w.memory.set(pod, running(2))
		w.pause(100 * time.Millisecond)
		status := running(2)
		for i := range status.ContainerStatuses {
			status.ContainerStatuses[i].Ready = false
			w.memory.set(pod, status)
		}
		w.pause(400*time.Millisecond + 1500*time.Millisecond)
		for _, c := range w.onServer("web-0").ContainerStatuses {
			if c.Ready {
				t.Errorf("%s is ready", c.Name)
			}
		}
		if n := w.api.Count(fakeapi.Patch); n > 5 {
			t.Errorf("%d PATCHes, want at most 5", n)
		}
		w.wantAcked("uid-a", 4)
	})
}

// C36: backlog: only the newest matters.
func TestC36_OnlyTheNewestMatters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Latency: 200 * time.Millisecond})
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		for i := range int32(500) {
			w.memory.set(pod, running(i+1))
			w.pause(2 * time.Millisecond)
		}
		w.pause(2 * time.Second)
		last := int32(0)
		for _, change := range w.api.StatusHistory("uid-a") {
			n := change.Status.ContainerStatuses[0].RestartCount
			if n < last {
				t.Errorf("%d after %d", n, last)
			}
			last = n
		}
		if last != 500 {
			t.Errorf("the last is %d, want 500", last)
		}
		if n := w.api.Count(fakeapi.Patch); n > 20 {
			t.Errorf("%d PATCHes, want at most 20", n)
		}
		w.wantAcked("uid-a", 500)
	})
}

// C37: TerminatePod again and again.
func TestC37_TerminateAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := never(newPod("web-0", "uid-a"))
		w.put(pod)
		status := ended(v1.PodFailed, 137)
		setCondition(&status, v1.PodReady, v1.ConditionTrue, noon) // SEMANTICS 80 has to end it
		w.memory.terminate(pod, status)
		w.pause(time.Second)
		w.api.ResetRequests()
		for range 20 {
			w.memory.terminate(pod, status)
			w.pause(2 * time.Second)
		}
		w.wantCounts(nil)
		w.wantAcked("uid-a", 21)
	})
}

// C39: one rejected status does not stop the rest.
func TestC39_OneRejectedStatusDoesNotStopTheRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		fault := w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 422, Message: "bad exit code"})
		many(5, func(i int, pod *v1.Pod) { w.put(pod); w.memory.set(pod, running(1)) })
		w.pause(2 * time.Second)
		many(5, func(i int, pod *v1.Pod) {
			if i > 0 {
				w.wantAcked(pod.UID, 1)
			}
		})
		w.pause(28 * time.Second)
		if n := fault.Hits(); n < 4 || n > 6 {
			t.Errorf("%d tries in 30 s, want at most 6", n)
		}
		if n := w.api.Count(fakeapi.Get); n != 1 {
			t.Errorf("%d GETs, want one for the version", n)
		}
		f := w.Failing()["uid-0"]
		if f.Reason != "Invalid" || f.Code != 422 || f.Attempts != fault.Hits() || !strings.Contains(f.Message, "bad exit code") || !f.RetryAt.After(time.Now()) {
			t.Errorf("failing: %+v", f)
		}
		if text, at := w.LastError(); !strings.Contains(text, "default/web-0") || at.IsZero() {
			t.Errorf("LastError = %q, %s", text, at)
		}
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, "bad exit code") && !strings.Contains(line, "web-0") {
				t.Errorf("line does not name the pod: %s", line)
			}
		}
		if n := strings.Count(w.log.String(), "bad exit code"); n != 1 {
			t.Errorf("%d lines in 30 s, want 1:\n%s", n, w.log.String())
		}
		w.pause(5 * time.Second) // right after a try: the next one is far away
		if wait := time.Until(w.Failing()["uid-0"].RetryAt); wait < 10*time.Second {
			t.Fatalf("next try in %s: the test can not tell", wait)
		}
		fault.Remove()
		w.memory.set(newPod("web-0", "uid-0"), running(2))
		w.pause(2 * time.Second)
		w.wantAcked("uid-0", 2)
		if n := len(w.Failing()); n != 0 {
			t.Errorf("%d failing at the end", n)
		}
	})
}

// C39: one rejected status does not stop the rest.
func TestC39_NewVersionsDoNotMakeItBusy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		fault := w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 403})
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		for i := range int32(300) {
			w.memory.set(pod, running(i))
			w.pause(100 * time.Millisecond)
		}
		if n := fault.Hits(); n > 31 {
			t.Errorf("%d tries in 30 s, want one a second", n)
		}
	})
}

// C40: server asks to slow down.
func TestC40_ServerAsksToSlowDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 429, RetryAfter: 3 * time.Second, Times: 1})
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		w.memory.set(pod, running(2)) // doesn't cut it short
		w.pause(1900 * time.Millisecond)
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes within 3 s", n)
		}
		w.pause(3 * time.Second)
		w.wantAcked("uid-a", 2)

		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Code: 429, RetryAfter: time.Hour, Times: 1})
		w.memory.set(pod, running(3))
		w.pause(299 * time.Second)
		if acked, _ := w.acked("uid-a"); acked != 2 {
			t.Errorf("acked %d after 299 s", acked)
		}
		w.pause(2 * time.Second)
		w.wantAcked("uid-a", 3)
	})
}

// C41: stop signal with unsent statuses.
func TestC41_DrainSendsWhatIsPending(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(20, func(i int, pod *v1.Pod) { w.put(never(pod)); w.memory.set(pod, running(1)) })
		w.pause(2 * time.Second)
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Latency: 100 * time.Millisecond})
		many(20, func(i int, pod *v1.Pod) { w.memory.set(never(pod), ended(v1.PodFailed, 1)) })
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := w.Drain(ctx); err != nil {
			t.Errorf("Drain = %v", err)
		}
		many(20, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 2) })
	})
}

// C41: stop signal with unsent statuses.
func TestC41_DrainOfAHangingServerEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(20, func(i int, pod *v1.Pod) { w.put(never(pod)); w.memory.set(pod, running(1)) })
		w.pause(2 * time.Second)
		hang := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Effect: fakeapi.Hang})
		many(20, func(i int, pod *v1.Pod) { w.memory.set(never(pod), ended(v1.PodFailed, 1)) })
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := w.Drain(ctx)
		if !errors.Is(err, ErrNotDelivered) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Drain = %v", err)
		}
		start := time.Now()
		w.stop()
		if took := time.Since(start); took > 500*time.Millisecond {
			t.Errorf("stopping took %s", took)
		}
		if failing := w.Failing(); len(failing) != 0 {
			t.Errorf("the end of the run counts as failure: %v", failing)
		}
		hang.Remove()
		w.restart()
		w.pause(2 * time.Second)
		many(20, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 2) })
	})
}

// C41: what can't be sent is on disk; nobody has to wait for a dead server.
func TestC41_DrainOfADeadServerEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(20, func(i int, pod *v1.Pod) { w.put(never(pod)); w.memory.set(pod, running(1)) })
		w.pause(2 * time.Second)
		w.api.NetworkDown()
		many(20, func(i int, pod *v1.Pod) { w.memory.set(never(pod), ended(v1.PodFailed, 1)) })
		start := time.Now()
		err := w.Drain(t.Context())
		if took := time.Since(start); !errors.Is(err, ErrNotDelivered) || !strings.Contains(err.Error(), "can't be reached") || took > 4*time.Second {
			t.Errorf("Drain = %v after %s", err, took)
		}
		time.AfterFunc(500*time.Millisecond, func() {
			if err := w.api.NetworkUp(); err != nil {
				t.Error(err)
			}
		})
		if err := w.Drain(t.Context()); err != nil {
			t.Errorf("the server is back: Drain = %v", err)
		}
		many(20, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 2) })
	})
}

// C41: refused, gone and held pods.
func TestC41_DrainDoesNotWaitForTheHopeless(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(func(o *Options) { o.Runtime = newRuntime(true) })
		w.api.Inject(fakeapi.Fault{Match: about1("refused", fakeapi.Patch), Code: 422})
		w.put(newPod("refused", "uid-a"))
		w.memory.set(newPod("refused", "uid-a"), running(1))
		w.memory.set(newPod("gone", "uid-b"), running(1))
		held := never(newPod("held", "uid-c"))
		w.put(held)
		w.memory.set(held, ended(v1.PodFailed, 1))
		w.pause(5 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.Drain(ctx); err != nil {
			t.Errorf("Drain = %v", err)
		}
	})
}

// C42: somebody edits labels meanwhile.
func TestC42_SomebodyEditsLabelsMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		var editing sync.WaitGroup
		editing.Go(func() {
			for i := range 30 {
				if err := w.api.SetLabel("default", "web-0", "n", fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		for i := range int32(10) {
			w.memory.set(pod, running(i))
			time.Sleep(200 * time.Millisecond)
		}
		w.pause(time.Second)
		w.wantAcked("uid-a", 10)
		editing.Wait()
		for _, r := range w.api.Requests(about1("web-0", fakeapi.Patch)) {
			if strings.Contains(string(r.Body), "resourceVersion") || strings.Contains(string(r.Body), "labels") {
				t.Errorf("patch %s", r.Body)
			}
			if !strings.Contains(string(r.Body), `"metadata":{"uid":"uid-a"}`) {
				t.Errorf("patch without UID: %s", r.Body)
			}
			if r.Code != http.StatusOK {
				t.Errorf("patch answered with %d", r.Code)
			}
		}
		stored, _ := w.api.Pod("default", "web-0")
		if got := stored.Labels["n"]; got != "29" {
			t.Errorf("label %q, want 29", got)
		}
	})
}

// C43: object gone and back with an empty status.
func TestC43_GoneAndBackWithAnEmptyStatus(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(3))
		if err := w.api.Remove("default", "web-0"); err != nil {
			t.Fatal(err)
		}
		w.put(pod)
		w.pause(time.Second)
		w.wantAcked("uid-a", 1)
		if got := w.onServer("web-0").Phase; got != v1.PodRunning {
			t.Errorf("phase %s", got)
		}
		if got := w.memory.drops(); len(got) != 0 {
			t.Errorf("dropped %q", got)
		}
	})
}

// C44: conditions of other owners stay.
func TestC44_ConditionsOfOtherOwnersStay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const gate = "example.com/gate"
		pod := newPod("web-0", "uid-a")
		server := pod.DeepCopy()
		server.Status = running(0)
		setCondition(&server.Status, gate, v1.ConditionTrue, noon)
		w.put(server)
		w.start()
		check := func(want, ready v1.ConditionStatus, restarts int32) {
			t.Helper()
			status := w.onServer("web-0")
			seen := make(map[v1.PodConditionType]int)
			for _, c := range status.Conditions {
				seen[c.Type]++
				if c.Type == gate && c.Status != want {
					t.Errorf("gate is %s, want %s", c.Status, want)
				}
				if c.Type == v1.PodReady && c.Status != ready {
					t.Errorf("Ready is %s, want %s", c.Status, ready)
				}
			}
			for _, kind := range []v1.PodConditionType{gate, v1.PodReady, v1.ContainersReady} {
				if seen[kind] != 1 {
					t.Errorf("%d × %s", seen[kind], kind)
				}
			}
			if got := status.ContainerStatuses[0].RestartCount; got != restarts {
				t.Errorf("restart count %d, want %d", got, restarts)
			}
		}
		w.memory.set(pod, running(1))
		w.pause(time.Second)
		check(v1.ConditionTrue, v1.ConditionTrue, 1)
		if err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) { setCondition(&pod.Status, gate, v1.ConditionFalse, noon) }); err != nil {
			t.Fatal(err)
		}
		unready := running(2)
		unready.ContainerStatuses[0].Ready = false
		setCondition(&unready, v1.PodReady, v1.ConditionFalse, noon)
		w.memory.set(pod, unready)
		w.pause(time.Second)
		check(v1.ConditionFalse, v1.ConditionFalse, 2)
		if n := w.api.Count(fakeapi.Patch); n != 2 {
			t.Errorf("%d PATCHes, want 2", n)
		}
	})
}
