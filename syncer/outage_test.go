// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

func TestG11_OneHangingPodDelaysNobody(t *testing.T) {
	for _, hanging := range []int{1, 8} {
		t.Run(fmt.Sprint(hanging), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.start()
				many(20, func(i int, pod *v1.Pod) {
					w.put(pod)
					if i < hanging {
						w.api.Inject(fakeapi.Fault{Match: about1(pod.Name, fakeapi.Patch), Effect: fakeapi.Hang})
					}
				})
				w.pause(time.Second)
				// Long enough that hanging pods time out and come again, many times.
				for n := range int32(35) {
					many(20, func(i int, pod *v1.Pod) { w.memory.set(pod, running(n)) })
					w.pause(time.Second)
					many(20, func(i int, pod *v1.Pod) {
						if acked, version := w.acked(pod.UID); i >= hanging && acked != version {
							t.Fatalf("second %d: %s has acked %d of %d", n, pod.Name, acked, version)
						}
					})
				}
				if n := len(w.Failing()); n != hanging {
					t.Errorf("%d pods are failing, want %d", n, hanging)
				}
				if f := w.Failing()["uid-0"]; f.Reason != "Timeout" {
					t.Errorf("reason %q, want Timeout", f.Reason)
				}
			})
		})
	}
}

func TestG11_HangingPodIsSentWhenItNoLongerHangs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		hang := w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Effect: fakeapi.Hang})
		w.memory.set(pod, running(1))
		w.pause(time.Minute)
		if n := w.api.Count(fakeapi.Patch); n < 4 || n > 7 {
			t.Errorf("%d PATCHes in a minute of 10 s timeouts", n)
		}
		hang.Remove()
		w.pause(6 * time.Second)
		w.wantAcked("uid-a", 1)
	})
}

func TestOutage_ProbesAndThenSendsTheNewest(t *testing.T) {
	const pods = 40
	for _, tt := range []struct {
		name   string
		effect fakeapi.Effect
		code   int
	}{
		{"503", fakeapi.Answer, 503},
		{"broken connections", fakeapi.Abort, 0},
		{"no answers", fakeapi.Hang, 0},
		{"credentials expired", fakeapi.Answer, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.start()
				many(pods, func(i int, pod *v1.Pod) { w.put(pod); w.memory.set(pod, running(0)) })
				w.pause(2 * time.Second)
				many(pods, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 1) })
				w.api.ResetRequests()
				fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Effect: tt.effect, Code: tt.code})
				for n := range int32(60) {
					many(pods, func(i int, pod *v1.Pod) { w.memory.set(pod, running(n+1)) })
					w.pause(time.Second)
				}
				if n := w.api.Count(fakeapi.Patch); n < 30 || n > 90 {
					t.Errorf("%d PATCHes in a minute, want about one a second", n)
				}
				if !w.Stats().CircuitOpen {
					t.Error("circuit is closed")
				}
				if n := strings.Count(w.log.String(), "\n"); n > 10 {
					t.Errorf("%d lines of log in a minute:\n%s", n, w.log.String())
				}
				fault.Remove()
				w.api.ResetRequests()
				w.pause(3 * time.Second)
				many(pods, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 61) })
				if n := w.api.Count(fakeapi.Patch); n > pods {
					t.Errorf("%d PATCHes for %d pods", n, pods)
				}
				many(pods, func(i int, pod *v1.Pod) {
					// A request that hung may have been answered after all.
					extra := len(w.api.StatusHistory(pod.UID)) - 2
					if extra != 0 && !(extra == 1 && tt.effect == fakeapi.Hang) {
						t.Errorf("%s: %d statuses more than the first and the last", pod.Name, extra)
					}
				})
				if n := len(w.Failing()); n != 0 {
					t.Errorf("%d failing at the end", n)
				}
			})
		})
	}
}

func TestOutage_NetworkDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(50, func(i int, pod *v1.Pod) { w.put(pod); w.memory.set(pod, running(0)) })
		w.pause(2 * time.Second)
		w.api.NetworkDown()
		many(50, func(i int, pod *v1.Pod) { w.memory.set(pod, running(1)) })
		w.pause(10 * time.Minute)
		if err := w.api.NetworkUp(); err != nil {
			t.Fatal(err)
		}
		w.api.ResetRequests()
		w.pause(2 * time.Second)
		many(50, func(i int, pod *v1.Pod) { w.wantAcked(pod.UID, 2) })
		w.pause(10 * time.Second)
		if n := w.api.Count(fakeapi.Patch); n != 50 {
			t.Errorf("%d PATCHes, want 50", n)
		}
		// The watch is back, too.
		if err := w.api.SetStatus("default", "web-7", v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}); err != nil {
			t.Fatal(err)
		}
		w.pause(time.Second)
		if got := w.onServer("web-7").Phase; got != v1.PodRunning {
			t.Errorf("phase %s after the outage", got)
		}
	})
}

// TestOutage_OnePendingPod: too few pods to take the server for dead, but it must
// not take minutes either.
func TestOutage_OnePendingPod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Code: 503})
		w.memory.set(pod, running(1))
		w.pause(20 * time.Minute)
		fault.Remove()
		w.pause(6 * time.Second)
		w.wantAcked("uid-a", 1)
	})
}

// TestOutage_OneBrokenPod: when others get through, it backs off for longer.
func TestOutage_OneBrokenPod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		broken := newPod("broken", "uid-b")
		w.put(broken)
		fault := w.api.Inject(fakeapi.Fault{Match: about1("broken", fakeapi.Patch), Code: 500})
		w.memory.set(broken, running(1))
		other := newPod("other", "uid-o")
		w.put(other)
		for i := range int32(60) {
			w.memory.set(other, running(i))
			w.pause(time.Minute)
		}
		if n := fault.Hits(); n > 30 {
			t.Errorf("%d tries in an hour", n)
		}
	})
}

func TestG5_ServerRestoredFromBackup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(5, func(i int, pod *v1.Pod) { w.put(pod); w.memory.set(pod, running(1)) })
		w.pause(2 * time.Second)
		backup := w.api.Backup()
		many(5, func(i int, pod *v1.Pod) { w.memory.set(pod, running(2)) })
		w.pause(2 * time.Second)
		w.api.Restore(backup)
		w.pause(30 * time.Second)
		many(5, func(i int, pod *v1.Pod) {
			w.wantAcked(pod.UID, 2)
			if n := w.onServer(pod.Name).ContainerStatuses[0].RestartCount; n != 2 {
				t.Errorf("%s: restart count %d on the server, want 2", pod.Name, n)
			}
		})
	})
}

// TestG5_RestoredServerCaughtUp: the resourceVersion of the last event exists
// again, with another meaning.
func TestG5_RestoredServerCaughtUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		backup := w.api.Backup()
		w.memory.set(pod, running(2))
		w.pause(2 * time.Second)
		w.api.NetworkDown()
		w.api.Restore(backup)
		for i := range 50 {
			w.put(newPod(fmt.Sprintf("other-%d", i), types.UID(fmt.Sprintf("other-%d", i))))
		}
		w.pause(5 * time.Second)
		if err := w.api.NetworkUp(); err != nil {
			t.Fatal(err)
		}
		w.pause(20 * time.Second)
		if n := w.onServer("web-0").ContainerStatuses[0].RestartCount; n != 2 {
			t.Errorf("restart count %d on the server, want 2", n)
		}
	})
}

// TestG11_MoreHangingPodsThanWorkers: they take all workers once, for one timeout,
// and from then on half of them.
func TestG11_MoreHangingPodsThanWorkers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		many(20, func(i int, pod *v1.Pod) {
			w.put(pod)
			w.api.Inject(fakeapi.Fault{Match: about1(pod.Name, fakeapi.Patch), Effect: fakeapi.Hang})
			w.memory.set(pod, running(1))
		})
		healthy := newPod("healthy", "uid-h")
		w.put(healthy)
		w.pause(25 * time.Second)
		for n := range int32(60) {
			e := w.memory.set(healthy, running(n))
			w.pause(2 * time.Second)
			if acked, _ := w.acked("uid-h"); acked != e.Version {
				t.Fatalf("round %d: acked %d of %d", n, acked, e.Version)
			}
		}
	})
}

// TestG5_MissedEvents: what the watch didn't tell is found when it comes back.
func TestG5_MissedEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.deliver(newPod("web-0", "uid-a"), running(1))
		fault := w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List, fakeapi.Watch}}, Code: 500})
		w.api.CutWatches()
		if err := w.api.SetStatus("default", "web-0", v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}); err != nil {
			t.Fatal(err)
		}
		w.pause(5 * time.Minute)
		fault.Remove()
		w.pause(8 * time.Second)
		if got := w.onServer("web-0").Phase; got != v1.PodRunning {
			t.Errorf("phase %s", got)
		}
	})
}

// TestG5_ListOvertakenByOwnPatch: a LIST that the server answered before it got our
// PATCH comes in after that PATCH's answer. It is no news.
func TestG5_ListOvertakenByOwnPatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, running(1))
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Watch}}, Code: 500, Times: 1})
		w.api.CutWatches()
		w.pause(100 * time.Millisecond)
		list := w.api.Inject(fakeapi.Fault{
			Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List}}, Effect: fakeapi.Late, Latency: 5 * time.Second, Times: 1,
		})
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Watch}}, Latency: 5 * time.Second, Times: 1})
		w.pause(4 * time.Second)
		if list.Hits() != 1 {
			t.Fatal("there is no LIST under way")
		}
		w.memory.set(pod, running(2))
		w.pause(4 * time.Second)
		w.Wake("uid-a") // the LIST is in, and the WATCH that would tell the rest isn't
		w.pause(4 * time.Minute)
		w.wantAcked("uid-a", 2)
		if n := w.api.Count(fakeapi.Patch); n != 2 {
			t.Errorf("%d PATCHes, want 2", n)
		}
	})
}

// TestOutage_LostAnswer: during an outage the server has got what nobody here knows
// of any more, and the informer has not caught up. A refusal is reason to look.
func TestOutage_LostAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		pod := never(newPod("web-0", "uid-a"))
		w.put(pod)
		w.pause(time.Second)
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.List, fakeapi.Watch}}, Code: 500})
		w.api.CutWatches()
		w.pause(time.Second)
		if err := w.api.SetStatus("default", "web-0", ended(v1.PodRunning, 1)); err != nil {
			t.Fatal(err)
		}
		w.memory.set(pod, running(2))
		w.pause(time.Second)
		refused := 0
		for _, r := range w.api.Requests(about1("web-0", fakeapi.Patch)) {
			if r.Code == 422 {
				refused++
			}
		}
		if refused != 1 || w.api.Count(fakeapi.Get) != 1 {
			t.Errorf("%d refused PATCHes and %d GETs, want 1 and 1", refused, w.api.Count(fakeapi.Get))
		}
		w.wantAcked("uid-a", 1)
		if failing := w.Failing(); len(failing) != 0 {
			t.Errorf("failing: %+v", failing)
		}
	})
}

// TestServerThatDropsAField: a server without a feature gate. The same version is
// not sent for ever.
func TestServerThatDropsAField(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		status := running(1)
		status.VolumeHealth = []v1.PodVolumeHealth{{Name: "data", LastTransitionTime: noon}}
		pod := newPod("web-0", "uid-a")
		w.deliver(pod, status)
		if n := len(w.onServer("web-0").VolumeHealth); n != 0 {
			t.Fatalf("the server keeps volume health; the test is for one that doesn't")
		}
		w.pause(10 * time.Minute)
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1", n)
		}
		// A real difference is still repaired.
		if err := w.api.Mutate("default", "web-0", func(pod *v1.Pod) { pod.Status.Message = "mine" }); err != nil {
			t.Fatal(err)
		}
		w.pause(2 * time.Second)
		if got := w.onServer("web-0").Message; got != "" {
			t.Errorf("message %q", got)
		}
		w.wantAcked("uid-a", 1)
	})
}

// TestTruncatedAnswer: the server did it, but we don't know.
func TestTruncatedAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start()
		w.api.Inject(fakeapi.Fault{Match: about1("web-0", fakeapi.Patch), Effect: fakeapi.Truncate, Times: 1})
		pod := newPod("web-0", "uid-a")
		w.put(pod)
		w.memory.set(pod, running(1))
		w.pause(2 * time.Second)
		w.wantAcked("uid-a", 1)
		if n := w.api.Count(fakeapi.Patch); n != 1 {
			t.Errorf("%d PATCHes, want 1: the watch shows that it was done", n)
		}
		if n := len(w.Failing()); n != 0 {
			t.Errorf("%d failing", n)
		}
	})
}

func TestG4_UrgentPodsGoFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(func(o *Options) { o.Workers = 1 })
		many(40, func(i int, pod *v1.Pod) { w.put(never(pod)); w.memory.set(pod, running(0)) })
		w.pause(2 * time.Second)
		w.api.ResetRequests()
		w.api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Latency: 100 * time.Millisecond})
		many(38, func(i int, pod *v1.Pod) { w.memory.set(pod, running(1)) })
		w.pause(250 * time.Millisecond) // the queue is full, the worker busy
		w.memory.set(never(newPod("web-38", "uid-38")), ended(v1.PodFailed, 1))
		unready := running(0)
		setCondition(&unready, v1.PodReady, v1.ConditionFalse, noon)
		w.memory.set(newPod("web-39", "uid-39"), unready)
		w.pause(10 * time.Second)
		place := make(map[string]int)
		for i, r := range w.api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}) {
			place[r.Name] = i
		}
		if len(place) != 40 || place["web-38"] > 5 || place["web-39"] > 5 {
			t.Errorf("places %d and %d of %d, want among the first", place["web-38"], place["web-39"], len(place))
		}
	})
}

func TestWake_ByEitherUID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		runtime := newRuntime(true)
		w.start(func(o *Options) {
			o.Runtime, o.HeldInterval, o.Pods = runtime, time.Hour, statics{"uid-m": "uid-s"}
		})
		w.put(mirrorPod("static", "uid-m"))
		static := newPod("static", "uid-s")
		w.memory.set(static, running(1))
		w.pause(time.Second)
		w.memory.set(static, ended(v1.PodFailed, 1))
		w.pause(time.Second)
		runtime.set(false)
		w.pause(time.Second)
		if got := w.onServer("static").Phase; got != v1.PodRunning {
			t.Fatalf("phase %s before the wake-up", got)
		}
		w.Wake(types.UID("uid-m"))
		w.pause(100 * time.Millisecond)
		if got := w.onServer("static").Phase; got != v1.PodFailed {
			t.Errorf("phase %s after the wake-up", got)
		}
	})
}
