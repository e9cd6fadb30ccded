// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

var _ Entries = (*projection.Projection)(nil)

// entryOf is version 2 of uid-a.
func entryOf(status v1.PodStatus, change ...func(*projection.Entry)) *projection.Entry {
	e := &projection.Entry{
		UID: "uid-a", Namespace: "default", Name: "web-0", Version: 2,
		Status: podstatus.Normalise(newPod("web-0", "uid-a"), &status),
	}
	for _, f := range change {
		f(e)
	}
	return e
}

func acked(e *projection.Entry)       { e.Acked, e.AckedUID = e.Version, "uid-a" }
func ackedElse(e *projection.Entry)   { e.Acked, e.AckedUID = e.Version, "uid-old-mirror" }
func finished(e *projection.Entry)    { e.Finished = true }
func ackedBefore(e *projection.Entry) { e.Acked, e.AckedUID = e.Version-1, "uid-a" }

// liveOf is uid-a on the server.
func liveOf(status v1.PodStatus, change ...func(*v1.Pod)) *v1.Pod {
	pod := newPod("web-0", "uid-a")
	pod.Status = status
	for _, f := range change {
		f(pod)
	}
	return pod
}

func deleting(pod *v1.Pod) { pod.DeletionTimestamp = &noon }
func isMirror(pod *v1.Pod) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podstatus.AnnotationMirror, "x")
}

func TestDecide(t *testing.T) {
	type short struct {
		Action            action
		Repair, Ack, Held bool
	}
	tests := []struct {
		name string
		view view
		want short
	}{
		{"SEMANTICS 3: no mirror yet", view{entry: entryOf(running(1)), identity: idUnpaired, static: true}, short{}},
		{"SEMANTICS 86: pod unknown, unsent", view{entry: entryOf(running(1)), identity: idAbsent}, short{Action: actLook}},
		{"SEMANTICS 86: pod unknown, all sent", view{entry: entryOf(running(1), acked), identity: idAbsent}, short{}},
		{"SEMANTICS 87: perhaps recreated", view{entry: entryOf(running(1)), identity: idDoubtful, live: liveOf(running(1))}, short{Action: actLook}},
		{"SEMANTICS 87: recreated", view{entry: entryOf(running(1)), identity: idRecreated, live: liveOf(running(1))}, short{Action: actForget}},

		{"new version", view{entry: entryOf(running(2), ackedBefore), live: liveOf(running(1))}, short{Action: actPatch}},
		{"first version", view{entry: entryOf(running(1)), live: liveOf(v1.PodStatus{Phase: v1.PodPending})}, short{Action: actPatch}},
		{"SEMANTICS 91: acked, but the server differs", view{entry: entryOf(running(2), acked), live: liveOf(running(1))}, short{Action: actPatch, Repair: true}},
		{"SEMANTICS 85: nothing differs, unacked", view{entry: entryOf(running(1)), live: liveOf(running(1))}, short{Ack: true}},
		{"nothing differs, acked", view{entry: entryOf(running(1), acked), live: liveOf(running(1))}, short{}},
		{"SEMANTICS 88: acked by another mirror", view{entry: entryOf(running(1), ackedElse), live: liveOf(running(1)), static: true}, short{Ack: true}},

		{"SEMANTICS 79: containers may run", view{entry: entryOf(ended(v1.PodFailed, 1)), live: liveOf(running(1)), mayRun: true}, short{Action: actPatch, Held: true}},
		{"SEMANTICS 82: held and sent, not acked", view{entry: entryOf(running(1), func(e *projection.Entry) { e.Status.Phase = v1.PodFailed }), live: liveOf(running(1)), mayRun: true}, short{Held: true}},
		{"SEMANTICS 82: nothing runs any more", view{entry: entryOf(ended(v1.PodFailed, 1)), live: liveOf(running(1))}, short{Action: actPatch}},

		{"SEMANTICS 96: all four", view{entry: entryOf(ended(v1.PodFailed, 1), acked, finished), live: liveOf(ended(v1.PodFailed, 1), deleting)}, short{Action: actDelete}},
		{"SEMANTICS 96: all four, unacked", view{entry: entryOf(ended(v1.PodFailed, 1), finished), live: liveOf(ended(v1.PodFailed, 1), deleting)}, short{Action: actDelete, Ack: true}},
		{"SEMANTICS 96: not being deleted", view{entry: entryOf(ended(v1.PodFailed, 1), acked, finished), live: liveOf(ended(v1.PodFailed, 1))}, short{}},
		{"SEMANTICS 96: not finished", view{entry: entryOf(ended(v1.PodFailed, 1), acked), live: liveOf(ended(v1.PodFailed, 1), deleting)}, short{}},
		{"SEMANTICS 96: not terminal", view{entry: entryOf(running(1), acked, finished), live: liveOf(running(1), deleting)}, short{}},
		{"SEMANTICS 96: a mirror", view{entry: entryOf(ended(v1.PodFailed, 1), acked, finished), live: liveOf(ended(v1.PodFailed, 1), deleting, isMirror), static: true}, short{}},
		{"SEMANTICS 97: send first", view{entry: entryOf(ended(v1.PodFailed, 1), finished), live: liveOf(running(1), deleting)}, short{Action: actPatch}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.view.now = noon.Add(time.Hour)
			d := decide(tt.view)
			got := short{d.action, d.repair, d.ack, d.held}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", d.reason, diff)
			}
		})
	}
}

func TestDecide_ChangesNothingOfItsInput(t *testing.T) {
	e, live := entryOf(running(2)), liveOf(running(1))
	setCondition(&live.Status, "example.com/gate", v1.ConditionTrue, noon)
	status, pod := e.Status.DeepCopy(), live.DeepCopy()
	d := decide(view{entry: e, live: live, now: noon.Time})
	d.status.Conditions[0].Message, d.status.ContainerStatuses[0].Name = "spoilt", "spoilt"
	if diff := cmp.Diff(status, e.Status); diff != "" {
		t.Errorf("entry changed:\n%s", diff)
	}
	if diff := cmp.Diff(pod, live); diff != "" {
		t.Errorf("live pod changed:\n%s", diff)
	}
}

func TestTransitionsDiffer(t *testing.T) {
	later := metav1.NewTime(noon.Add(time.Minute))
	one := func(s v1.ConditionStatus, at metav1.Time) []v1.PodCondition {
		return []v1.PodCondition{{Type: v1.PodReady, Status: s, LastTransitionTime: at}}
	}
	const yes, no = v1.ConditionTrue, v1.ConditionFalse
	tests := []struct {
		name                  string
		live, desired, merged []v1.PodCondition
		want                  bool
	}{
		{"same", one(yes, noon), one(yes, noon), one(yes, noon), false},
		{"other time", one(yes, noon), one(yes, later), one(yes, later), true},
		{"less than a second", one(yes, noon), one(yes, metav1.NewTime(noon.Add(300*time.Millisecond))), one(yes, noon), false},
		{"SEMANTICS 80 ended it", one(no, noon), one(yes, noon), one(no, later), false},
		{"the server's copy stays", one(yes, noon), one(yes, later), one(yes, noon), false},
		{"new on the server", nil, one(yes, later), one(yes, later), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := transitionsDiffer(tt.live, tt.desired, tt.merged); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestUrgent(t *testing.T) {
	unready := running(1)
	setCondition(&unready, v1.PodReady, v1.ConditionFalse, noon)
	tests := []struct {
		name  string
		entry *projection.Entry
		live  *v1.Pod
		want  bool
	}{
		{"ordinary", entryOf(running(2)), liveOf(running(1)), false},
		{"not on the server", entryOf(running(2)), nil, false},
		{"becomes unready", entryOf(unready), liveOf(running(1)), true},
		{"becomes ready", entryOf(running(1)), liveOf(unready), true},
		{"ended", entryOf(ended(v1.PodSucceeded, 0)), liveOf(running(1)), true},
		{"finished", entryOf(running(1), finished), liveOf(running(1)), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := urgent(tt.entry, tt.live); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
