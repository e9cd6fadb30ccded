// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetVolumeHealth returns the status with the whole condition set of one volume
// replaced (SEMANTICS 23-25, 27); an empty set means healthy. Two sets are the
// same when they have the same pairs of status and reason, and a volume without
// an entry has the empty set; the status is then nil and the bool false.
func SetVolumeHealth(status *v1.PodStatus, volume string, conditions []v1.VolumeHealthCondition, now time.Time) (*v1.PodStatus, bool) {
	at := -1
	var have []v1.VolumeHealthCondition
	if status != nil {
		for i := range status.VolumeHealth {
			if status.VolumeHealth[i].Name == volume {
				at, have = i, status.VolumeHealth[i].HealthConditions
				break
			}
		}
	}
	if subset(have, conditions) && subset(conditions, have) {
		return nil, false
	}
	entry := v1.PodVolumeHealth{
		Name:               volume,
		HealthConditions:   uniqueHealth(conditions),
		LastTransitionTime: wholeSecond(metav1.NewTime(now)),
	}
	out := copyStatus(status)
	if at < 0 {
		out.VolumeHealth = append(out.VolumeHealth, entry)
	} else {
		out.VolumeHealth[at] = entry
	}
	return out, true
}

// subset reports whether each pair of status and reason in a is also in b. The
// lists are short: the API allows 16 conditions.
func subset(a, b []v1.VolumeHealthCondition) bool {
	for i := range a {
		if !hasHealth(b, &a[i]) {
			return false
		}
	}
	return true
}

func hasHealth(list []v1.VolumeHealthCondition, c *v1.VolumeHealthCondition) bool {
	for i := range list {
		if list[i].Status == c.Status && list[i].Reason == c.Reason {
			return true
		}
	}
	return false
}

// uniqueHealth copies the list without repeated pairs, which the API server
// would refuse together with the rest of the status.
func uniqueHealth(list []v1.VolumeHealthCondition) []v1.VolumeHealthCondition {
	var out []v1.VolumeHealthCondition
	for i := range list {
		if !hasHealth(out, &list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// copyVolumeHealth is for SEMANTICS 26: what is inherited must not be shared.
func copyVolumeHealth(list []v1.PodVolumeHealth) []v1.PodVolumeHealth {
	if len(list) == 0 {
		return nil
	}
	out := make([]v1.PodVolumeHealth, len(list))
	for i := range list {
		list[i].DeepCopyInto(&out[i])
	}
	return out
}
