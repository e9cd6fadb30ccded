// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// action is what to do about a pod.
type action uint8

const (
	actSkip   action = iota // nothing to send
	actPatch                // the server's status differs
	actDelete               // the object may go (SEMANTICS 96)
	actForget               // the pod was recreated: drop its status (SEMANTICS 87)
	actGone                 // the finished pod's object is gone: drop its status (SEMANTICS 97)
	actLook                 // too little is known: GET
)

// identity is how the live object relates to the entry.
type identity uint8

const (
	idSame      identity = iota
	idAbsent             // no live object is known
	idUnpaired           // static pod whose mirror is not known
	idDoubtful           // another pod has the name, but what we see may be old
	idRecreated          // another pod has the name, certainly
)

// view is everything that a decision depends on.
type view struct {
	entry    *projection.Entry
	live     *v1.Pod // nil: not known
	identity identity
	static   bool
	mayRun   bool // containers may still run (SEMANTICS 79)
	now      time.Time
}

// decision is the outcome of decide.
type decision struct {
	action action
	reason string
	// status is what the server should hold; for actPatch.
	status *v1.PodStatus
	// repair: the version was acked, yet the server differs.
	repair bool
	// ack: the server holds the version already.
	ack bool
	// held: the terminal phase is held back, so this is not the last word.
	held bool
	// kept are fields that stay as the server has them.
	kept []string
}

// decide says what to do about a pod. It is pure.
func decide(v view) decision {
	if v.entry.Reason == journal.ReasonObserved {
		// Recorded from the server: nobody here has said it, so nobody sends it.
		return decision{reason: "status was only observed"}
	}
	switch v.identity {
	case idUnpaired:
		return decision{reason: "static pod without mirror pod"}
	case idAbsent:
		if !v.entry.Pending() && v.entry.Finished {
			// The object was there when this version was acked; its deletion is all
			// that was left. A crash after our DELETE leads here, too.
			return decision{action: actGone, reason: "finished pod is gone from the server"}
		}
		if !v.entry.Pending() {
			return decision{reason: "pod is not on the server, nothing unsent"}
		}
		return decision{action: actLook, reason: "pod is not among the live pods"}
	case idDoubtful:
		return decision{action: actLook, reason: "another pod seems to have the name"}
	case idRecreated:
		return decision{action: actForget, reason: "another pod has the name"}
	}

	merged := podstatus.MergeLive(podstatus.Merge{
		Pod: v.live, Live: &v.live.Status, Desired: v.entry.Status,
		Static: v.static, MayRun: v.mayRun, Now: v.now,
	})
	d := decision{status: merged.Status, held: merged.Held, kept: merged.Kept}
	acked := ackedBy(v.entry, v.live.UID)
	// The merged status is compared, not the desired one: what merging takes from
	// the server, or a held phase, is no difference and would be sent for ever.
	differs := podstatus.NeedsReconcile(v.live, merged.Status) ||
		!acked && transitionsDiffer(v.live.Status.Conditions, v.entry.Status.Conditions, merged.Status.Conditions)
	if differs {
		d.action, d.reason, d.repair = actPatch, "status differs", acked
		return d
	}
	d.reason = "server holds the status"
	d.ack = !acked && !d.held
	if deletable(v.entry, v.live) {
		d.action, d.reason = actDelete, "finished and being deleted"
	}
	return d
}

// ackedBy reports whether the newest version is acked for this very object.
func ackedBy(e *projection.Entry, live types.UID) bool {
	return !e.Pending() && e.AckedUID == live
}

// deletable are the four conditions of SEMANTICS 96. The entry must be the one
// that live was last compared with or patched to.
func deletable(e *projection.Entry, live *v1.Pod) bool {
	return e.Finished && live.DeletionTimestamp != nil &&
		!podstatus.IsMirror(live) && podstatus.Terminal(live.Status.Phase)
}

// transitionsDiffer reports a condition that has the same status on both sides
// but another transition time, as after two changes of which none was sent.
// Reconciling ignores these times; a version that was never sent carries them.
// Only times that merging took from the desired status count, not those it made.
func transitionsDiffer(live, desired, merged []v1.PodCondition) bool {
	for _, m := range merged {
		d, l := condition(desired, m.Type), condition(live, m.Type)
		if d == nil || l == nil || d.Status != m.Status || l.Status != m.Status || !sameSecond(d, &m) {
			continue
		}
		if !sameSecond(d, l) {
			return true
		}
	}
	return false
}

func condition(conditions []v1.PodCondition, t v1.PodConditionType) *v1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == t {
			return &conditions[i]
		}
	}
	return nil
}

// sameSecond compares transition times as they survive JSON.
func sameSecond(a, b *v1.PodCondition) bool {
	return a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
}

// urgent reports whether a pod goes before others (G4): it is finished, ended,
// or its readiness changes.
func urgent(e *projection.Entry, live *v1.Pod) bool {
	if e.Finished || podstatus.Terminal(e.Status.Phase) {
		return true
	}
	return live != nil && ready(e.Status) != ready(&live.Status)
}

func ready(s *v1.PodStatus) bool {
	c := condition(s.Conditions, v1.PodReady)
	return c != nil && c.Status == v1.ConditionTrue
}
