// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What MergeResult.Kept may list.
const (
	KeptPhase      = "phase"
	KeptQOSClass   = "qosClass"
	KeptContainers = "containers"
)

// Merge is the input of MergeLive.
type Merge struct {
	// Live is the status that the API server has, Desired the stored one. Nil is
	// an empty status.
	Live, Desired *v1.PodStatus
	// Pod is the object that Live belongs to. Its spec tells which containers may
	// start again; nil: that is not looked at.
	Pod *v1.Pod
	// Static marks a static pod: its terminal phase may be left (SEMANTICS 80a).
	Static bool
	// MayRun says that containers of the pod may still run. The container runtime
	// tells, at each send; the status does not (SEMANTICS 79).
	MayRun bool
	// Now is the time for conditions that change with this merge.
	Now time.Time
}

// MergeResult is what the API server is to have.
type MergeResult struct {
	// Status shares no memory with the input. No condition type occurs twice.
	Status *v1.PodStatus
	// Held says that a terminal phase waits until no container can run (SEMANTICS 79).
	Held bool
	// Kept lists, by the Kept constants, where the server has something else and
	// keeps it: a terminal phase (SEMANTICS 80a), the QOS class (83), containers that
	// ended and may not start again, for which it would refuse the whole status.
	Kept []string
}

// MergeLive merges the stored status into the one that the API server has
// (SEMANTICS 77-83). Lists that say the same as the server's in another order take
// the server's, so that order alone never makes a patch. Merging into the result
// again gives the same.
func MergeLive(m Merge) MergeResult {
	live, now := m.Live, wholeSecond(metav1.NewTime(m.Now))
	if live == nil {
		live = new(v1.PodStatus)
	}
	res := MergeResult{Status: copyStatus(m.Desired)}
	out := res.Status
	ending := !Terminal(live.Phase) && Terminal(out.Phase)

	out.Conditions = mergeConditions(live, out, ending && !m.MayRun, now)
	keepClaims(out, live)
	switch {
	case ending && m.MayRun:
		res.Held = true
		keepPhase(out, live)
	case !m.Static && Terminal(live.Phase) && out.Phase != live.Phase:
		res.Kept = append(res.Kept, KeptPhase)
		if !Terminal(out.Phase) {
			keepContainers(out, live)
		}
		keepPhase(out, live)
	}
	// The server does not take it back, either.
	out.ObservedGeneration = max(out.ObservedGeneration, live.ObservedGeneration)
	if keepEnded(m.Pod, out, live) {
		res.Kept = append(res.Kept, KeptContainers)
	}
	if live.QOSClass != "" && out.QOSClass != live.QOSClass {
		if out.QOSClass != "" { // a producer that leaves it out claims nothing
			res.Kept = append(res.Kept, KeptQOSClass)
		}
		out.QOSClass = live.QOSClass
	}
	if Terminal(out.Phase) {
		endReadiness(out, live, now)
	}
	keepOrder(out, live)
	return res
}

// keepContainers takes the server's containers: what is stored is from before the
// pod ended, as after the restore of an old journal. Sent, it would bring
// containers back to life, or be refused for that again and again.
func keepContainers(out, live *v1.PodStatus) {
	kept := live.DeepCopy()
	out.InitContainerStatuses = kept.InitContainerStatuses
	out.ContainerStatuses = kept.ContainerStatuses
	out.EphemeralContainerStatuses = kept.EphemeralContainerStatuses
}

// keepEnded takes the server's containers that ended and may not start again. A
// store that knows less than the server, as one that was begun anew, has nothing
// to compare with when it is told that they run.
func keepEnded(pod *v1.Pod, out, live *v1.PodStatus) (kept bool) {
	if pod == nil {
		return false
	}
	eachRefused(pod, live, out, func(r refusal) bool {
		named := func(s v1.ContainerStatus) bool { return s.Name == r.old.Name }
		i := slices.IndexFunc(r.next, named)
		if r.old.State.Terminated == nil || i < 0 || slices.ContainsFunc(r.next[i+1:], named) {
			return true // nothing of the server's would help
		}
		r.next[i], kept = *r.old.DeepCopy(), true
		return true
	})
	return kept
}

// NeedsReconcile reports whether the API server has something else than the
// stored status and a patch would change that (SEMANTICS 91). The pod is the one
// of the API server, for static pods the mirror.
//
// A difference that a merge takes over from the server, such as a terminal phase
// (SEMANTICS 80a), is none: it would be found again at every pass, for ever.
func NeedsReconcile(pod *v1.Pod, desired *v1.PodStatus) bool {
	live := Normalise(pod, &pod.Status)
	if Equal(live, desired) {
		return false
	}
	// A held phase counts as a difference: it is to be sent as soon as it may.
	merged := MergeLive(Merge{Pod: pod, Live: live, Desired: desired, Static: IsMirror(pod) || IsStatic(pod)})
	return !Equal(live, merged.Status)
}

func keepPhase(out, live *v1.PodStatus) {
	out.Phase, out.Reason, out.Message = live.Phase, live.Reason, live.Message
}

// keepClaims takes over what only others write (SEMANTICS 81).
func keepClaims(out, live *v1.PodStatus) {
	claims := (&v1.PodStatus{
		ResourceClaimStatuses:                live.ResourceClaimStatuses,
		ExtendedResourceClaimStatus:          live.ExtendedResourceClaimStatus,
		NodeAllocatableResourceClaimStatuses: live.NodeAllocatableResourceClaimStatuses,
	}).DeepCopy()
	out.ResourceClaimStatuses = claims.ResourceClaimStatuses
	out.ExtendedResourceClaimStatus = claims.ExtendedResourceClaimStatus
	out.NodeAllocatableResourceClaimStatuses = claims.NodeAllocatableResourceClaimStatuses
}

// mergeConditions returns the server's conditions that we do not own, in its
// order, then ours (SEMANTICS 77). A shared one of ours goes out only with the
// phase that it explains (SEMANTICS 78).
func mergeConditions(live, desired *v1.PodStatus, sendShared bool, now metav1.Time) []v1.PodCondition {
	out := slices.Grow([]v1.PodCondition(nil), len(live.Conditions)+len(desired.Conditions))
	for i := range live.Conditions {
		c := live.Conditions[i]
		if !OwnedCondition(c.Type) && conditionIndex(out, c.Type) < 0 {
			out = append(out, c)
		}
	}
	for i := range desired.Conditions {
		c := desired.Conditions[i]
		// Of duplicates the last one counts when comparing, so it is the one to
		// send: with another one the server would never equal the stored status.
		if lastCondition(desired.Conditions, c.Type) != i {
			continue
		}
		switch {
		case OwnedCondition(c.Type):
			out = append(out, c)
		case SharedCondition(c.Type) && sendShared:
			// Stamped when it was stored, which may be long ago by now.
			_, old := FindCondition(live, c.Type)
			c.LastTransitionTime = transitionTime(&c, old, now)
			if at := conditionIndex(out, c.Type); at >= 0 {
				out[at] = c
			} else {
				out = append(out, c)
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// keepOrder takes over the server's order of lists that are otherwise the same.
func keepOrder(out, live *v1.PodStatus) {
	if sameConditionSet(out.Conditions, live.Conditions) {
		out.Conditions = slices.Clone(live.Conditions)
	}
	for _, p := range [...][2]*[]v1.ContainerStatus{
		{&out.ContainerStatuses, &live.ContainerStatuses},
		{&out.InitContainerStatuses, &live.InitContainerStatuses},
		{&out.EphemeralContainerStatuses, &live.EphemeralContainerStatuses},
	} {
		if ours, theirs := p[0], *p[1]; reordered(*ours, theirs) {
			*ours = make([]v1.ContainerStatus, len(theirs))
			for i := range theirs {
				theirs[i].DeepCopyInto(&(*ours)[i])
			}
		}
	}
}

// sameConditionSet compares all fields. The first list has no type twice.
func sameConditionSet(a, b []v1.PodCondition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		j := conditionIndex(b, a[i].Type)
		if j < 0 || a[i].ObservedGeneration != b[j].ObservedGeneration ||
			a[i].Status != b[j].Status || a[i].Reason != b[j].Reason || a[i].Message != b[j].Message ||
			!a[i].LastTransitionTime.Equal(&b[j].LastTransitionTime) ||
			!a[i].LastProbeTime.Equal(&b[j].LastProbeTime) {
			return false
		}
	}
	return true
}

// reordered reports whether two lists are equal once sorted, and only then.
func reordered(a, b []v1.ContainerStatus) bool {
	if len(a) != len(b) || len(a) < 2 || equalContainers(a, b) {
		return false
	}
	a, b = slices.Clone(a), slices.Clone(b)
	sortByName(a)
	sortByName(b)
	return equalContainers(a, b)
}

func conditionIndex(conditions []v1.PodCondition, t v1.PodConditionType) int {
	return slices.IndexFunc(conditions, func(c v1.PodCondition) bool { return c.Type == t })
}

// endReadiness makes sure that nothing ready is sent with a terminal phase
// (SEMANTICS 80).
func endReadiness(out, live *v1.PodStatus, now metav1.Time) {
	if !isTrue(out, v1.PodReady) && !isTrue(out, v1.ContainersReady) {
		return
	}
	for _, t := range [...]v1.PodConditionType{v1.ContainersReady, v1.PodReady} {
		c := v1.PodCondition{
			Type: t, Status: v1.ConditionFalse, Reason: terminalReason(out.Phase),
			ObservedGeneration: out.ObservedGeneration,
		}
		at, have := FindCondition(out, t)
		// What an earlier send already ended does not end again: with a time that
		// moves, each send would find something to change.
		if _, sent := FindCondition(live, t); sent != nil && sent.Status == c.Status && sent.Reason == c.Reason {
			have = sent
		}
		c.LastTransitionTime = transitionTime(&c, have, now)
		if at < 0 {
			out.Conditions = append(out.Conditions, c)
		} else {
			out.Conditions[at] = c
		}
	}
}

func isTrue(s *v1.PodStatus, t v1.PodConditionType) bool {
	_, c := FindCondition(s, t)
	return c != nil && c.Status == v1.ConditionTrue
}
