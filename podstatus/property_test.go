// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"bytes"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// mustEncode makes byte-for-byte comparisons.
func mustEncode(t *rapid.T, s *v1.PodStatus) []byte {
	t.Helper()
	b, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSemantics66_NormaliseTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, s := genPod.Draw(t, "pod"), genPodStatus.Draw(t, "status")
		once := Normalise(pod, s)
		twice := Normalise(pod, once)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("normalising again changes it:\n%s", diff)
		}
		b := mustEncode(t, once)
		if !bytes.Equal(b, mustEncode(t, twice)) {
			t.Fatal("normalising again changes the bytes")
		}
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if !Equal(once, back) || !bytes.Equal(b, mustEncode(t, Normalise(pod, back))) {
			t.Fatal("a normalised status does not survive a round trip")
		}
		for _, list := range [][]v1.ContainerStatus{once.ContainerStatuses, once.InitContainerStatuses, once.EphemeralContainerStatuses} {
			for _, c := range list {
				for _, e := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
					if e != nil && (len(e.Message) > messageLimit(&pod.Spec) || !utf8.ValidString(e.Message)) {
						t.Fatalf("message of %s: %d bytes, limit %d", c.Name, len(e.Message), messageLimit(&pod.Spec))
					}
				}
			}
		}
	})
}

func TestSemantics58_EqualAgreesWithReference(t *testing.T) {
	equal := 0
	rapid.Check(t, func(t *rapid.T) {
		pod := genPod.Draw(t, "pod")
		a := Normalise(pod, genPodStatus.Draw(t, "a"))
		// Two independent draws hardly ever agree: take one and put in a part of the other.
		b, other := a.DeepCopy(), Normalise(pod, genPodStatus.Draw(t, "b"))
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, reflect.TypeFor[v1.PodStatus]().NumField()-1), 0, 2).Draw(t, "fields") {
			reflect.ValueOf(b).Elem().Field(i).Set(reflect.ValueOf(other).Elem().Field(i))
		}
		want := referenceEqual(a, b)
		if got := Equal(a, b); got != want {
			t.Fatalf("Equal = %v, the reference says %v\n%s", got, want, cmp.Diff(a, b))
		}
		if Equal(b, a) != want {
			t.Fatal("Equal is not symmetric")
		}
		if want {
			equal++
		}
	})
	if equal == 0 {
		t.Error("no two statuses were equal: the property was hardly tested")
	}
}

// A chain of updates of one pod keeps what must not change.
func TestCompute_Invariants(t *testing.T) {
	accepted, refusedUpdates, unchanged := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pod := genPod.Draw(t, "pod")
		// Rule 72 would refuse most updates of random init statuses.
		inits("init", "proxy", "app", "side", "debug", "ghost")(pod)
		u := Update{Pod: pod, Previous: distinct(genPodStatus.Draw(t, "first previous")), Static: genBool.Draw(t, "static"), Now: noon}
		for range rapid.IntRange(1, 5).Draw(t, "updates") {
			u.Status = distinct(genPodStatus.Draw(t, "status"))
			if genBool.Draw(t, "same again") && u.Cached {
				u.Status = u.Previous.DeepCopy()
				u.Status.Conditions = append(u.Status.Conditions, cond("example.com/more", v1.ConditionTrue, noonTime))
			}
			quick := Unchanged(u)
			var r Result
			var err error
			if genBool.Draw(t, "terminate") {
				r = ComputeTerminate(u)
			} else {
				r, err = Compute(u)
			}
			if quick && (err != nil || r.Changed) {
				t.Fatalf("Unchanged, but Compute = %v, %v", r.Changed, err)
			}
			if err != nil {
				refusedUpdates++
				continue
			}
			accepted++
			if quick {
				unchanged++
			}
			checkUpdate(t, u, r)
			u.Previous, u.Cached, u.Now = r.Status, true, u.Now.Add(time.Minute)
		}
	})
	if accepted == 0 || refusedUpdates == 0 || unchanged == 0 {
		t.Errorf("%d accepted, %d refused, %d unchanged: one of them was hardly tested", accepted, refusedUpdates, unchanged)
	}
}

// distinct drops container statuses whose name is there already. With one of two
// terminated, a status may not even follow itself, here and at the API server.
func distinct(s *v1.PodStatus) *v1.PodStatus {
	for _, list := range []*[]v1.ContainerStatus{&s.ContainerStatuses, &s.InitContainerStatuses, &s.EphemeralContainerStatuses} {
		var kept []v1.ContainerStatus
		for _, c := range *list {
			if findContainer(kept, c.Name) == nil {
				kept = append(kept, c)
			}
		}
		*list = kept
	}
	return s
}

func checkUpdate(t *rapid.T, u Update, r Result) {
	t.Helper()
	if r.Status.StartTime.IsZero() {
		t.Fatal("no start time")
	}
	if old := u.Previous.StartTime; u.Cached && !r.Status.StartTime.Equal(old) {
		t.Fatalf("start time moved from %v to %v", old, r.Status.StartTime)
	}
	if u.Cached && !u.Static && Terminal(u.Previous.Phase) && r.Status.Phase != u.Previous.Phase {
		t.Fatalf("phase went from %s to %s", u.Previous.Phase, r.Status.Phase)
	}
	if r.Status.ObservedGeneration < u.Previous.ObservedGeneration {
		t.Fatal("observed generation went down")
	}
	if u.Cached && len(u.Previous.VolumeHealth) > 0 && len(r.Status.VolumeHealth) == 0 {
		t.Fatal("volume health was cleared")
	}
	if err := CheckTransition(u.Pod, u.Previous, r.Status); err != nil {
		t.Fatalf("an illegal transition was stored: %v", err)
	}
	again := Update{Pod: u.Pod, Status: r.Status, Previous: r.Status, Cached: true, Static: u.Static, Now: u.Now.Add(time.Hour)}
	second, err := Compute(again)
	if err != nil || second.Changed || second.Terminated != nil {
		t.Fatalf("the result again: changed %v, terminated %v, %v", second.Changed, second.Terminated, err)
	}
	if diff := cmp.Diff(mustEncode(t, r.Status), mustEncode(t, second.Status)); diff != "" {
		// Duplicates of a condition type are stamped like the first one.
		if !hasDuplicates(r.Status) {
			t.Fatalf("the result again gives other bytes:\n%s", cmp.Diff(r.Status, second.Status))
		}
	}
}

func hasDuplicates(s *v1.PodStatus) bool {
	for i, c := range s.Conditions {
		if lastCondition(s.Conditions, c.Type) != i {
			return true
		}
	}
	return false
}

func TestMergeLive_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := genPod.Draw(t, "pod")
		live := Normalise(pod, genPodStatus.Draw(t, "live"))
		desired := Normalise(pod, genPodStatus.Draw(t, "desired"))
		m := Merge{Live: live, Desired: desired, Static: genBool.Draw(t, "static"), MayRun: genBool.Draw(t, "may run"), Now: noon}
		r := MergeLive(m)
		if hasDuplicates(r.Status) {
			t.Fatalf("a condition type occurs twice: %s", spell(r.Status.Conditions))
		}
		for _, c := range live.Conditions {
			if OwnedCondition(c.Type) || SharedCondition(c.Type) {
				continue
			}
			_, theirs := FindCondition(live, c.Type)
			if _, got := FindCondition(r.Status, c.Type); got == nil || *got != *theirs {
				t.Fatalf("foreign condition %v became %v", theirs, got)
			}
		}
		for _, c := range r.Status.Conditions {
			if i, _ := FindCondition(live, c.Type); i < 0 && !OwnedCondition(c.Type) && !SharedCondition(c.Type) {
				t.Fatalf("condition %s of somebody else was added", c.Type)
			}
		}
		if Terminal(r.Status.Phase) && (isTrue(r.Status, v1.PodReady) || isTrue(r.Status, v1.ContainersReady)) {
			t.Fatalf("phase %s is sent with %s", r.Status.Phase, spell(r.Status.Conditions))
		}
		if !m.Static && Terminal(live.Phase) && r.Status.Phase != live.Phase {
			t.Fatalf("the server's phase %s is overwritten with %s", live.Phase, r.Status.Phase)
		}
		if m.MayRun && !Terminal(live.Phase) && Terminal(r.Status.Phase) {
			t.Fatal("a terminal phase is sent while containers may run")
		}

		// Once the server has it there is nothing more to send.
		second := m
		second.Live, second.Now = r.Status, noon.Add(time.Hour)
		if diff := cmp.Diff(r.Status, MergeLive(second).Status); diff != "" {
			t.Fatalf("merging into the result changes it:\n%s", diff)
		}
		pod.Status = *r.Status
		if m.Static {
			annotated(AnnotationSource, "file")(pod)
		}
		if !r.Held && NeedsReconcile(pod, desired) {
			t.Fatalf("what was just sent needs a reconcile:\n%s", cmp.Diff(r.Status, desired))
		}
	})
}

// No function writes to its input, and none hands out a part of it: the result
// stays the same when all of the input is overwritten.
func TestNoSharing(t *testing.T) {
	calls := map[string]func(pod *v1.Pod, a, b *v1.PodStatus, set []v1.VolumeHealthCondition) *v1.PodStatus{
		"Normalise": func(pod *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return Normalise(pod, a)
		},
		"Compute": func(pod *v1.Pod, a, b *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			r, _ := Compute(Update{Pod: pod, Status: a, Previous: b, Cached: true, Static: true, Now: noon})
			return r.Status
		},
		"Unchanged": func(pod *v1.Pod, a, b *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			Unchanged(Update{Pod: pod, Status: a, Previous: b, Cached: true, Now: noon})
			return nil
		},
		"ComputeTerminate": func(pod *v1.Pod, a, b *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return ComputeTerminate(Update{Pod: pod, Status: a, Previous: b, Cached: true, Now: noon}).Status
		},
		"Terminate": func(pod *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return Terminate(pod, a, false, noon)
		},
		"Terminate without stored": func(pod *v1.Pod, _, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return Terminate(pod, nil, false, noon)
		},
		"SetReady": func(pod *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			s, _, _ := SetReady(pod, a, "x", true, noon)
			return s
		},
		"SetStarted": func(_ *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			s, _, _ := SetStarted(a, "x", true)
			return s
		},
		"SetVolumeHealth": func(_ *v1.Pod, a, _ *v1.PodStatus, set []v1.VolumeHealthCondition) *v1.PodStatus {
			s, _ := SetVolumeHealth(a, "data", set, noon)
			return s
		},
		"MergeLive": func(_ *v1.Pod, a, b *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return MergeLive(Merge{Live: a, Desired: b, Now: noon}).Status
		},
		"MergeLive, reordered": func(_ *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			return MergeLive(Merge{Live: a, Desired: Normalise(new(v1.Pod), a), Now: noon}).Status
		},
		"NeedsReconcile": func(pod *v1.Pod, a, _ *v1.PodStatus, _ []v1.VolumeHealthCondition) *v1.PodStatus {
			NeedsReconcile(pod, a)
			return nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				pod, a, b := genPod.Draw(t, "pod"), genPodStatus.Draw(t, "a"), genPodStatus.Draw(t, "b")
				set := genHealth.Draw(t, "health").HealthConditions
				podBefore, aBefore, bBefore := pod.DeepCopy(), a.DeepCopy(), b.DeepCopy()
				got := call(pod, a, b, set)
				if diff := cmp.Diff(podBefore, pod) + cmp.Diff(aBefore, a) + cmp.Diff(bBefore, b); diff != "" {
					t.Fatalf("an argument was changed:\n%s", diff)
				}
				want := got.DeepCopy()
				for _, v := range []any{pod, a, b, set} {
					scribble(reflect.ValueOf(v))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("the result shares memory with an argument:\n%s", diff)
				}
			})
		})
	}
}

// scribble overwrites everything that can be reached from v.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		v.Clear()
	case reflect.String:
		if v.CanSet() {
			v.SetString("scribbled")
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if v.CanSet() {
			v.SetInt(v.Int() + 77)
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(!v.Bool())
		}
	}
}
