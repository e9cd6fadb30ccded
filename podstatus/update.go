// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Update is the input of Compute and ComputeTerminate.
type Update struct {
	// Pod as the caller passed it: its spec decides on transitions, message
	// limits and the order of init containers.
	Pod *v1.Pod
	// Status is what is to be stored. Its observed generation is taken as it is:
	// SetPodStatus puts the pod's generation there first (SEMANTICS 11).
	Status *v1.PodStatus
	// Previous is the status that SEMANTICS 8 chooses: stored, else of the mirror
	// pod, else of the pod. Nil when there is none at all.
	Previous *v1.PodStatus
	// Cached says that Previous is the stored status. Only then can an update
	// change nothing (SEMANTICS 13) or leave a terminal phase (SEMANTICS 15).
	Cached bool
	// Static marks a static pod, whose terminal phase binds nobody (SEMANTICS 15).
	Static bool
	// Now is the time for what changes with this update.
	Now time.Time
}

// Result is a status that is ready to be stored.
type Result struct {
	// Status is normalised and shares no memory with the input.
	Status *v1.PodStatus
	// Changed is false when the stored status already says the same (SEMANTICS 58).
	// Whether a new version is made all the same is the caller's decision
	// (SEMANTICS 12, 39).
	Changed bool
	// Terminated lists the containers that ended with this update (SEMANTICS 53).
	Terminated []Termination
}

// Compute runs steps (b) to (i) of the common update path (SEMANTICS 49). A
// refused update gives a *TransitionError and no result.
func Compute(u Update) (Result, error) {
	u = u.withoutNil()
	if err := CheckTransition(u.Pod, u.Previous, u.Status); err != nil {
		return Result{}, err
	}
	if u.leavesTerminalPhase() {
		return Result{}, &TransitionError{
			UID: u.Pod.UID, From: string(u.Previous.Phase), To: string(u.Status.Phase),
			Reason: "a stored terminal phase is final for this UID",
		}
	}
	return u.finish(u.Status.DeepCopy()), nil
}

// ComputeTerminate is Compute for the result of Terminate. It never refuses, as a
// pod whose end could not be stored would hang for ever: where Compute would
// refuse, the previous container state or phase stays (SEMANTICS 48).
func ComputeTerminate(u Update) Result {
	u = u.withoutNil()
	status := u.Status.DeepCopy()
	eachRefused(u.Pod, u.Previous, status, func(r refusal) bool {
		r.restore()
		return true
	})
	if u.leavesTerminalPhase() {
		status.Phase = u.Previous.Phase
		status.Reason = u.Previous.Reason
		status.Message = u.Previous.Message
	}
	return u.finish(status)
}

// Unchanged reports, without copying anything, that Compute would accept the
// update and find nothing changed. False means no more than that Compute has to
// be asked. It serves callers that have no use for a new status unless there is
// one to store: a copy costs more than all the rest of such an update.
func Unchanged(u Update) bool {
	if !u.Cached || u.Pod == nil || u.Status == nil || u.Previous == nil {
		return false
	}
	if u.Previous.StartTime.IsZero() {
		return false
	}
	next := *u.Status
	next.StartTime = u.Previous.StartTime
	if len(next.VolumeHealth) == 0 {
		next.VolumeHealth = u.Previous.VolumeHealth
	}
	next.ObservedGeneration = max(next.ObservedGeneration, u.Previous.ObservedGeneration)
	// What equals a normalised status is normalised, up to the message limit: that
	// one shrinks when an ephemeral container comes along.
	return Equal(u.Previous, &next) &&
		messagesFit(&next, messageLimit(&u.Pod.Spec)) &&
		CheckTransition(u.Pod, u.Previous, &next) == nil
}

func messagesFit(s *v1.PodStatus, limit int) bool {
	for _, statuses := range [...][]v1.ContainerStatus{
		s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			for _, t := range [...]*v1.ContainerStateTerminated{
				statuses[i].State.Terminated, statuses[i].LastTerminationState.Terminated,
			} {
				if t != nil && len(t.Message) > limit {
					return false
				}
			}
		}
	}
	return true
}

// withoutNil lets the steps read every part without looking.
func (u Update) withoutNil() Update {
	if u.Pod == nil {
		u.Pod = new(v1.Pod)
	}
	if u.Status == nil {
		u.Status = new(v1.PodStatus)
	}
	if u.Previous == nil {
		u.Previous = new(v1.PodStatus)
	}
	return u
}

// leavesTerminalPhase is the check of SEMANTICS 15.
func (u Update) leavesTerminalPhase() bool {
	return u.Cached && !u.Static && Terminal(u.Previous.Phase) && u.Status.Phase != u.Previous.Phase
}

// finish runs steps (c) to (i) on a status that it owns.
func (u Update) finish(status *v1.PodStatus) Result {
	now := metav1.NewTime(u.Now)
	stampTransitions(status, u.Previous, now)
	if start := u.Previous.StartTime; start != nil && !start.IsZero() {
		status.StartTime = new(*start)
	} else if status.StartTime.IsZero() {
		status.StartTime = new(now)
	}
	if len(status.VolumeHealth) == 0 {
		status.VolumeHealth = copyVolumeHealth(u.Previous.VolumeHealth)
	}
	status.ObservedGeneration = max(status.ObservedGeneration, u.Previous.ObservedGeneration)
	normalise(u.Pod, status)
	return Result{
		Status:     status,
		Terminated: newlyTerminated(u.Previous, status),
		Changed:    !u.Cached || !Equal(u.Previous, status),
	}
}

// stampTransitions sets the transition time of the conditions that are stamped
// here: the previous one while the status of the condition is the same, now
// otherwise, and never what the caller gave (SEMANTICS 50).
func stampTransitions(status, previous *v1.PodStatus, now metav1.Time) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if stamped(c.Type) {
			_, old := FindCondition(previous, c.Type)
			c.LastTransitionTime = transitionTime(c, old, now)
		}
	}
}

// stamped leaves out the resize conditions, which bring times of their own
// (SEMANTICS 29), and what belongs to others.
func stamped(t v1.PodConditionType) bool {
	switch t {
	case v1.PodResizePending, v1.PodResizeInProgress:
		return false
	}
	return OwnedCondition(t) || SharedCondition(t)
}

// transitionTime is the time at which c got its status, given the condition it
// follows, which may be nil.
func transitionTime(c, old *v1.PodCondition, now metav1.Time) metav1.Time {
	if old != nil && old.Status == c.Status {
		return old.LastTransitionTime
	}
	return now
}
