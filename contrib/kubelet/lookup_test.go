// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// named is a pod with the annotations that tell its source, if any.
func named(name string, uid types.UID, annotations ...string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", name, uid
	for _, a := range annotations {
		if p.Annotations == nil {
			p.Annotations = make(map[string]string)
		}
		p.Annotations[a] = "file"
	}
	return p
}

const source, mirror = "kubernetes.io/config.source", "kubernetes.io/config.mirror"

func TestSemantics2And3_Lookup(t *testing.T) {
	pods := kubepod.NewBasicPodManager()
	removed, gone := named("removed", "source-3", source), named("gone", "source-4", source)
	for _, p := range []*v1.Pod{
		named("web", "uid-web"), named("single", "source-1", source),
		named("pair", "source-2", source), named("pair", "mirror-2", source, mirror),
		removed, named("removed", "mirror-3", source, mirror),
	} {
		pods.AddPod(p)
	}
	l := newPodLookup(pods)
	l.give(removed)
	l.give(gone)
	l.give(named("pair", "mirror-2", source, mirror)) // no pod that the node runs
	pods.RemovePod(removed)

	tests := []struct {
		uid, resolved, mirrorOf types.UID
		static                  bool
		mirrorPod               types.UID // "" is none
		found                   bool
	}{
		{uid: "uid-web", resolved: "uid-web", found: true},
		{uid: "source-1", resolved: "source-1", static: true, found: true},
		{uid: "source-2", resolved: "source-2", mirrorOf: "mirror-2", static: true, mirrorPod: "mirror-2", found: true},
		{uid: "source-3", resolved: "source-3", mirrorOf: "mirror-3", static: true, mirrorPod: "mirror-3"},
		{uid: "source-4", resolved: "source-4"},
		{uid: "mirror-2", resolved: "source-2"},
		{uid: "mirror-3", resolved: "source-3"},
		{uid: "none", resolved: "none"},
		{uid: "", resolved: ""},
	}
	for _, tt := range tests {
		if _, ok := l.PodByUID(tt.uid); ok != tt.found {
			t.Errorf("PodByUID(%q): %v, want %v", tt.uid, ok, tt.found)
		}
		if got := l.ResolveUID(tt.uid); got != tt.resolved {
			t.Errorf("ResolveUID(%q) is %q, want %q", tt.uid, got, tt.resolved)
		}
		if got, static := l.MirrorOf(tt.uid); got != tt.mirrorOf || static != tt.static {
			t.Errorf("MirrorOf(%q) is %q, %v; want %q, %v", tt.uid, got, static, tt.mirrorOf, tt.static)
		}
		var got types.UID
		if p, ok := l.MirrorPod(tt.uid); ok {
			got = p.UID
		}
		if got != tt.mirrorPod {
			t.Errorf("MirrorPod(%q) is %q, want %q", tt.uid, got, tt.mirrorPod)
		}
	}
}

// safe has no containers.
type safe struct{}

func (safe) PodCouldHaveRunningContainers(*v1.Pod) bool { return false }

// Nothing in memory grows with pods that are gone.
func TestPodsComeAndGo(t *testing.T) {
	m, err := New(Options{
		Store: manager.Options{Path: filepath.Join(t.TempDir(), journal.FileName)},
		Pods:  kubepod.NewBasicPodManager(), DeletionSafety: safe{}, Logger: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	quiet := logr.Discard()
	for _, uid := range []types.UID{"uid-a", "uid-b"} {
		m.SetPodStatus(quiet, named(string(uid), uid), v1.PodStatus{Phase: v1.PodPending})
		m.SetPodResizePendingCondition(uid, v1.PodReasonDeferred, "", 1)
	}
	m.SetPodStatus(quiet, named("Not A Name", "uid-c"), v1.PodStatus{}) // is refused
	m.RemoveOrphanedStatuses(quiet, map[types.UID]bool{"uid-a": true})
	if g, r := len(m.pods.given), len(m.resizes.uids); g != 1 || r != 1 {
		t.Errorf("one pod is left, and %d given, %d resized", g, r)
	}
}
