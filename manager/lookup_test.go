// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// fakePods is a pod source of a fixed list, and a list of live pods.
type fakePods struct{ pods []*v1.Pod }

func (f fakePods) find(match func(*v1.Pod) bool) (*v1.Pod, bool) {
	for _, p := range f.pods {
		if match(p) {
			return p, true
		}
	}
	return nil, false
}

func (f fakePods) ByUID(uid types.UID) (*v1.Pod, bool) {
	return f.find(func(p *v1.Pod) bool { return p.UID == uid })
}

func (f fakePods) Get(namespace, name string) (*v1.Pod, bool) {
	return f.find(func(p *v1.Pod) bool { return p.Namespace == namespace && p.Name == name })
}

func (f fakePods) PodByUID(uid types.UID) (*v1.Pod, bool) {
	return f.find(func(p *v1.Pod) bool { return p.UID == uid && !podstatus.IsMirror(p) })
}

func (f fakePods) MirrorPod(source types.UID) (*v1.Pod, bool) {
	static, ok := f.PodByUID(source)
	if !ok || !podstatus.IsStatic(static) {
		return nil, false
	}
	return f.find(func(p *v1.Pod) bool { return podstatus.IsMirror(p) && nameOf(p) == nameOf(static) })
}

func (f fakePods) MirrorOf(source types.UID) (types.UID, bool) {
	static, ok := f.PodByUID(source)
	if !ok || !podstatus.IsStatic(static) {
		return "", false
	}
	if mirror, ok := f.MirrorPod(source); ok {
		return mirror.UID, true
	}
	return "", true
}

func (f fakePods) ResolveUID(uid types.UID) types.UID {
	for _, p := range f.pods {
		if m, ok := f.MirrorPod(p.UID); ok && m.UID == uid {
			return p.UID
		}
	}
	return uid
}

func TestSemantics01_MirrorStandsForItsStaticPod(t *testing.T) {
	sources := map[string]func(*Options){
		"own lookup":   func(*Options) {},
		"embedder's":   func(o *Options) { o.Pods = fakePods{pods: []*v1.Pod{pod(staticPod), pod(mirrorPod("mirror"))}} },
		"and remember": func(o *Options) { o.RememberPods = true },
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			s := open(t, source)
			s.set(pod(staticPod), runningReady())
			c := s.set(pod(mirrorPod("mirror")), runningReady(text("by the mirror")))
			if c.UID != "source" || c.Version != 2 {
				t.Errorf("change %+v, want version 2 of the source", c)
			}
			for _, uid := range []types.UID{"source", "mirror"} { // semantics 5
				if got := s.stored(uid); got.Message != "by the mirror" {
					t.Errorf("%s: message %q", uid, got.Message)
				}
			}
			if got := len(s.Entries()); got != 1 {
				t.Errorf("%d entries, want 1", got)
			}
			if _, err := s.FinishPod(t.Context(), "mirror"); err != nil {
				t.Errorf("finish by the mirror's UID: %v", err)
			}
			s.wantReadiness("mirror", appID, false, OutcomeUnknownPod, ErrUnknownPod) // semantics 6
			if _, err := s.RemoveOrphanedStatuses(t.Context(), sets.New[types.UID]("source", "mirror")); err != nil {
				t.Error(err)
			}
			s.wantVersion("source", 3)
		})
	}
}

func TestSemantics01_MirrorWithoutStaticPod(t *testing.T) {
	s := open(t)
	_, err := s.SetPodStatus(t.Context(), pod(mirrorPod("mirror")), runningReady())
	wantError(t, err, ErrUnknownPod)
	_, err = s.TerminatePod(t.Context(), pod(mirrorPod("mirror")))
	wantError(t, err, ErrUnknownPod)
	s.wantKinds()
}

func TestSemantics02_03_OwnLookup(t *testing.T) {
	memory := newPodMemory()
	for _, p := range []*v1.Pod{pod(staticPod), pod(staticPod, func(p *v1.Pod) { p.UID, p.Name = "lonely", "lonely" }), pod(number(7))} {
		r, err := memory.remember(p)
		if err != nil {
			t.Fatal(err)
		}
		memory.stored(p.UID, r)
	}
	given := pod(mirrorPod("given"))
	memory.mirror(given)
	live := fakePods{pods: []*v1.Pod{pod(mirrorPod("live")), pod(number(8))}}
	tests := []struct {
		name   string
		lookup ownLookup
		uid    types.UID

		known    bool
		mirror   types.UID
		static   bool
		resolved types.UID
	}{
		{"static, live mirror wins", ownLookup{memory, live}, "source", true, "live", true, "source"},
		{"static, given mirror", ownLookup{memory, nil}, "source", true, "given", true, "source"},
		{"static without mirror", ownLookup{memory, live}, "lonely", true, "", true, "lonely"},
		{"remembered pod", ownLookup{memory, live}, "uid-7", true, "", false, "uid-7"},
		{"live pod", ownLookup{memory, live}, "uid-8", true, "", false, "uid-8"},
		{"live mirror", ownLookup{memory, live}, "live", false, "", false, "source"},
		{"given mirror", ownLookup{memory, nil}, "given", false, "", false, "source"},
		{"unknown", ownLookup{memory, live}, "nobody", false, "", false, "nobody"},
		{"empty", ownLookup{memory, live}, "", false, "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := tt.lookup.PodByUID(tt.uid); ok != tt.known || ok && got.UID != tt.uid {
				t.Errorf("PodByUID: %v, %v", got, ok)
			}
			if mirror, static := tt.lookup.MirrorOf(tt.uid); mirror != tt.mirror || static != tt.static {
				t.Errorf("MirrorOf: %q, %v; want %q, %v", mirror, static, tt.mirror, tt.static)
			}
			if got, ok := tt.lookup.MirrorPod(tt.uid); ok != (tt.mirror != "") || ok && got.UID != tt.mirror {
				t.Errorf("MirrorPod: %v, %v", got, ok)
			}
			if got := tt.lookup.ResolveUID(tt.uid); got != tt.resolved {
				t.Errorf("ResolveUID: %q, want %q", got, tt.resolved)
			}
		})
	}
}

func TestOwnLookup_PodsSurviveARestart(t *testing.T) {
	s := open(t)
	p := pod(staticPod, withStatus(runningReady()), func(p *v1.Pod) { p.ResourceVersion = "12"; p.Labels = map[string]string{"a": "b"} })
	s.set(p, runningReady())
	// Only memory knows of a label that came without a change of the status …
	relabelled := p.DeepCopy()
	relabelled.Labels["a"] = "c"
	if c, err := s.SetPodStatus(t.Context(), relabelled, runningReady()); err != nil || c.Changed {
		t.Fatalf("%+v, %v", c, err)
	}
	want := func(label string) {
		t.Helper()
		got, ok := s.Pod("source")
		if !ok {
			t.Fatal("the pod is not known")
		}
		bare := p.DeepCopy()
		bare.ResourceVersion, bare.Labels["a"], bare.Status = "", label, *s.stored("source")
		if diff := cmp.Diff(bare, got); diff != "" {
			t.Errorf("pod (-want +got):\n%s", diff)
		}
		if _, static := s.pods.MirrorOf("source"); !static {
			t.Error("not known as static")
		}
	}
	want("c")
	s.reopen()
	want("b")
	// … until the next event carries it.
	s.reopen()
	if c, err := s.SetPodStatus(t.Context(), relabelled, runningReady()); err != nil || c.Changed {
		t.Fatalf("%+v, %v", c, err)
	}
	s.set(relabelled, runningReady(text("new")))
	if again, err := s.memory.remember(relabelled); err != nil || s.memory.toPersist("source", again) != nil {
		t.Errorf("the object would be journalled again (%v)", err)
	}
	s.reopen()
	want("c")
	s.wantReadiness("source", appID, false, OutcomeApplied, nil)
}

func TestRememberPods_WithAnEmbeddersLookup(t *testing.T) {
	for _, remember := range []bool{false, true} {
		s := open(t, func(o *Options) { o.Pods, o.RememberPods = fakePods{}, remember })
		s.set(pod(), runningReady())
		s.reopen()
		if _, ok := s.Pod("uid-a"); ok != remember {
			t.Errorf("RememberPods %v: pod known: %v", remember, ok)
		}
	}
}

// TestCommit_PodIsKnownWhenItsEventIs: whoever hears of an event, as the syncer
// does, finds the pod, and the static pod behind the mirror's UID.
func TestCommit_PodIsKnownWhenItsEventIs(t *testing.T) {
	s := open(t)
	heard := 0
	if err := s.journal.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	s.journal, err = journal.Open(s.opts.Path, journal.Options{OnCommit: func(events []journal.Event) {
		for _, e := range events {
			if e.Kind != journal.KindSet {
				continue
			}
			heard++
			if _, ok := s.Pod(e.UID); !ok {
				t.Errorf("event %d: pod %s is not known", e.Sequence, e.UID)
			}
			if _, static := s.pods.MirrorOf(e.UID); !static {
				t.Errorf("event %d: pod %s is not known as static", e.Sequence, e.UID)
			}
		}
		s.projection.Commit(events)
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.set(pod(staticPod), runningReady())
	s.set(pod(staticPod, func(p *v1.Pod) { p.UID = "source-2" }), runningReady())
	if heard != 2 {
		t.Errorf("heard of %d events, want 2", heard)
	}
}

// TestCommit_FailedWriteLeavesNoPod: what was not stored is not remembered.
func TestCommit_FailedWriteLeavesNoPod(t *testing.T) {
	s := open(t)
	s.set(pod(staticPod), runningReady())
	known, _ := s.Pod("source")
	if err := s.journal.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*v1.Pod{
		pod(staticPod, func(p *v1.Pod) { p.UID = "source-2" }),
		pod(staticPod, func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }),
	} {
		if _, err := s.SetPodStatus(t.Context(), p, runningReady(text("new"))); !errors.Is(err, journal.ErrClosed) {
			t.Fatalf("error %v, want ErrClosed", err)
		}
	}
	if _, ok := s.Pod("source-2"); ok {
		t.Error("the pod that was not stored is known")
	}
	if got, _ := s.Pod("source"); cmp.Diff(known, got) != "" {
		t.Errorf("the stored pod changed (-want +got):\n%s", cmp.Diff(known, got))
	}
	if uid, _ := s.memory.staticNamed(types.NamespacedName{Namespace: "default", Name: "web-0"}); uid != "source" {
		t.Errorf("the name belongs to %q, want source", uid)
	}
}
