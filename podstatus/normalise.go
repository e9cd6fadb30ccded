// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxTerminationBytes is the room for the termination messages of all
// containers of a pod together (SEMANTICS 61).
const maxTerminationBytes = 12288

// Normalise returns a copy of s in the one form that is stored and compared
// (SEMANTICS 61-66): whole seconds, termination messages within their limit,
// texts valid UTF-8, container statuses in a fixed order. The pod's spec gives the message
// limit and the order of the init containers. Normalising twice gives the same
// bytes.
func Normalise(pod *v1.Pod, s *v1.PodStatus) *v1.PodStatus {
	out := copyStatus(s)
	normalise(pod, out)
	return out
}

// copyStatus is DeepCopy with nil as an empty status.
func copyStatus(s *v1.PodStatus) *v1.PodStatus {
	if s == nil {
		return new(v1.PodStatus)
	}
	return s.DeepCopy()
}

// normalise is Normalise in place, for a status that nobody else has.
func normalise(pod *v1.Pod, s *v1.PodStatus) {
	limit := messageLimit(&pod.Spec)
	if s.StartTime != nil {
		*s.StartTime = wholeSecond(*s.StartTime)
	}
	makeValid(&s.Message)
	makeValid(&s.Reason)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastProbeTime = wholeSecond(c.LastProbeTime)
		c.LastTransitionTime = wholeSecond(c.LastTransitionTime)
		makeValid(&c.Message)
		makeValid(&c.Reason)
	}
	for _, statuses := range [...][]v1.ContainerStatus{
		s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			normaliseContainer(&statuses[i], limit)
		}
	}
	for i := range s.VolumeHealth {
		h := &s.VolumeHealth[i]
		h.LastTransitionTime = wholeSecond(h.LastTransitionTime)
		for j := range h.HealthConditions {
			makeValid(&h.HealthConditions[j].Message)
			makeValid(&h.HealthConditions[j].Reason)
		}
	}
	sortByName(s.ContainerStatuses)
	sortByName(s.EphemeralContainerStatuses)
	sortLikeSpec(s.InitContainerStatuses, pod.Spec.InitContainers)
}

// messageLimit is the number of bytes that each termination message may have
// (SEMANTICS 61).
func messageLimit(spec *v1.PodSpec) int {
	n := len(spec.Containers) + len(spec.InitContainers) + len(spec.EphemeralContainers)
	return maxTerminationBytes / max(1, n)
}

func normaliseContainer(c *v1.ContainerStatus, limit int) {
	normaliseState(&c.State, limit)
	normaliseState(&c.LastTerminationState, limit)
	for i := range c.AllocatedResourcesStatus {
		for j := range c.AllocatedResourcesStatus[i].Resources {
			if m := c.AllocatedResourcesStatus[i].Resources[j].Message; m != nil {
				makeValid(m)
			}
		}
	}
}

func normaliseState(s *v1.ContainerState, limit int) {
	if w := s.Waiting; w != nil {
		makeValid(&w.Message)
		makeValid(&w.Reason)
	}
	if r := s.Running; r != nil {
		r.StartedAt = wholeSecond(r.StartedAt)
	}
	if t := s.Terminated; t != nil {
		t.StartedAt = wholeSecond(t.StartedAt)
		t.FinishedAt = wholeSecond(t.FinishedAt)
		t.Message = cutMessage(t.Message, limit)
		makeValid(&t.Reason)
	}
}

// wholeSecond drops what the API server would not keep (SEMANTICS 62), and with
// it the monotonic reading.
func wholeSecond(t metav1.Time) metav1.Time {
	return metav1.Time{Time: t.Truncate(time.Second)}
}

// cutMessage returns at most limit bytes of m, which end between two runes and
// are valid UTF-8 (SEMANTICS 63).
func cutMessage(m string, limit int) string {
	// Before the cut: a replacement rune is longer than the byte it stands for.
	makeValid(&m)
	if len(m) <= limit {
		return m
	}
	for limit > 0 && !utf8.RuneStart(m[limit]) {
		limit--
	}
	// Cloned, as the status outlives the input and would keep all of it alive.
	return strings.Clone(m[:limit])
}

// makeValid replaces what JSON can't carry. The API server would store U+FFFD in
// its place and the status would never equal the server's copy.
func makeValid(s *string) {
	if !utf8.ValidString(*s) {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
}

func byName(a, b v1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) }

// sortByName keeps statuses of the same name in their order, for rule 66.
func sortByName(statuses []v1.ContainerStatus) {
	// Looked at first: sorted is the common case, and swaps move large structs.
	for i := 1; i < len(statuses); i++ {
		if statuses[i-1].Name > statuses[i].Name {
			slices.SortStableFunc(statuses, byName)
			return
		}
	}
}

// sortLikeSpec orders init statuses like the spec; those that are not in the
// spec keep their order at the end (SEMANTICS 64).
func sortLikeSpec(statuses []v1.ContainerStatus, spec []v1.Container) {
	sorted := true
	last := 0
	for i := range statuses {
		n := specIndex(spec, statuses[i].Name)
		sorted = sorted && n >= last
		last = n
	}
	if sorted {
		return
	}
	slices.SortStableFunc(statuses, func(a, b v1.ContainerStatus) int {
		return cmp.Compare(specIndex(spec, a.Name), specIndex(spec, b.Name))
	})
}

// specIndex returns the place of the container in the spec, or len(spec).
func specIndex(spec []v1.Container, name string) int {
	for i := range spec {
		if spec[i].Name == name {
			return i
		}
	}
	return len(spec)
}
