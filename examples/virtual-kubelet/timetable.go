// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod's annotations say what its containers do.
const (
	// runsForKey is how long they run, such as "90s". Without it they run until the pod
	// is deleted.
	runsForKey = "timetable.example/runs-for"
	// exitCodeKey is the exit code that they end with. Default 0.
	exitCodeKey = "timetable.example/exit-code"
)

// restartDelay is between the end of a container and its next start. A kubelet waits
// longer and longer, from 10 s on.
const restartDelay = 100 * time.Millisecond

// Exit codes and reasons.
const (
	exitDeleted     = 143 // as after SIGTERM
	reasonCompleted = "Completed"
	reasonError     = "Error"
	reasonRefused   = "NoTimetable"
)

// timetable is what a pod's containers do.
type timetable struct {
	runsFor  time.Duration // 0: until the pod is deleted
	exitCode int32
}

func readTimetable(pod *v1.Pod) (timetable, error) {
	var t timetable
	if text, ok := pod.Annotations[runsForKey]; ok {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return t, fmt.Errorf("annotation %s: %q is no time to run for", runsForKey, text)
		}
		t.runsFor = d
	}
	if text, ok := pod.Annotations[exitCodeKey]; ok {
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return t, fmt.Errorf("annotation %s: %q is no exit code", exitCodeKey, text)
		}
		t.exitCode = int32(code)
	}
	if len(pod.Spec.InitContainers) > 0 {
		return t, fmt.Errorf("init containers are not supported here")
	}
	return t, nil
}

// begun reports whether the provider has stored a status of a pod: the framework's, after
// a failure, has no containers.
func begun(stored *v1.PodStatus) bool {
	return stored != nil && (terminal(stored.Phase) || len(stored.ContainerStatuses) > 0)
}

// next returns the status that follows the stored one, nil for none, and when it is due.
// since is when the stored status was stored. ok is false if nothing follows by itself.
//
// It is a pure function of what the store has: after a crash the pods go on where they
// were, as those of a cloud would.
func next(pod *v1.Pod, stored *v1.PodStatus, since time.Time) (status v1.PodStatus, due time.Time, ok bool) {
	t, err := readTimetable(pod)
	switch {
	case !begun(stored) && err != nil:
		return refused(pod, err), since, true
	case !begun(stored):
		return waiting(pod, since), since, true
	case err != nil || terminal(stored.Phase):
		return status, due, false
	}
	switch state := stored.ContainerStatuses[0].State; { // they all do the same
	case state.Waiting != nil:
		return started(pod, stored, since), since, true
	case state.Running != nil && t.runsFor > 0:
		due = since.Add(t.runsFor)
		return ended(pod, stored, t.exitCode, due), due, true
	case state.Terminated != nil:
		due = since.Add(restartDelay)
		return started(pod, stored, due), due, true
	}
	return status, due, false
}

func terminal(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }

// refused is the status of a pod that can't be run here.
func refused(pod *v1.Pod, why error) v1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = v1.PodFailed, reasonRefused, why.Error()
	return status
}

// waiting is the first status of a pod.
func waiting(pod *v1.Pod, now time.Time) v1.PodStatus {
	status := *pod.Status.DeepCopy() // the API server has set a QoS class
	status.Phase, status.Reason, status.Message = v1.PodPending, "", ""
	status.StartTime = new(metav1.NewTime(now))
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: new(false),
			State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	setConditions(&status, v1.ConditionFalse, "ContainersNotReady")
	return status
}

// started is the status after all containers were started, for the first time or again.
func started(pod *v1.Pod, stored *v1.PodStatus, now time.Time) v1.PodStatus {
	status := *stored.DeepCopy()
	status.Phase = v1.PodRunning
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.State.Terminated != nil {
			c.LastTerminationState = c.State
			c.RestartCount++
		}
		c.ContainerID = fmt.Sprintf("timetable://%s-%s-%d", pod.UID, c.Name, c.RestartCount)
		c.ImageID = c.Image
		c.Ready, c.Started = true, new(true)
		c.State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	}
	setConditions(&status, v1.ConditionTrue, "")
	return status
}

// ended is the status after all containers ended: the pod's last one, unless they are to be
// restarted.
func ended(pod *v1.Pod, stored *v1.PodStatus, code int32, now time.Time) v1.PodStatus {
	status := *stored.DeepCopy()
	reason := reasonCompleted
	if code != 0 {
		reason = reasonError
	}
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		if c.State.Terminated != nil {
			continue
		}
		end := &v1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(now), ContainerID: c.ContainerID}
		if c.State.Running != nil {
			end.StartedAt = c.State.Running.StartedAt
		}
		c.Ready, c.Started = false, new(false)
		c.State = v1.ContainerState{Terminated: end}
	}
	again := pod.Spec.RestartPolicy == v1.RestartPolicyAlways || pod.Spec.RestartPolicy == v1.RestartPolicyOnFailure && code != 0
	switch {
	case pod.DeletionTimestamp == nil && again:
	case code == 0:
		status.Phase = v1.PodSucceeded
	default:
		status.Phase = v1.PodFailed
	}
	if terminal(status.Phase) {
		setConditions(&status, v1.ConditionFalse, "PodCompleted")
	} else {
		setConditions(&status, v1.ConditionFalse, "ContainersNotReady")
	}
	return status
}

// setConditions sets what the pod's readiness depends on. The store knows when they
// changed.
func setConditions(status *v1.PodStatus, ready v1.ConditionStatus, reason string) {
	set := func(kind v1.PodConditionType, value v1.ConditionStatus, reason string) {
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Type == kind {
				c.Status, c.Reason = value, reason
				return
			}
		}
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: kind, Status: value, Reason: reason})
	}
	set(v1.PodInitialized, v1.ConditionTrue, "")
	set(v1.ContainersReady, ready, reason)
	set(v1.PodReady, ready, reason)
}
