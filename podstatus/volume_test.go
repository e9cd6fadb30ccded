// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func adverse(status v1.VolumeHealthStatusType, reason string) v1.VolumeHealthCondition {
	return v1.VolumeHealthCondition{Status: status, Reason: reason}
}

func TestSemantics23_VolumeHealth(t *testing.T) {
	slow, lost := adverse(v1.VolumeHealthDegraded, "Slow"), adverse(v1.VolumeHealthDataLoss, "Lost")
	told := slow
	told.Message = "told otherwise"
	entry := func(name string, list ...v1.VolumeHealthCondition) v1.PodVolumeHealth {
		return v1.PodVolumeHealth{Name: name, HealthConditions: list, LastTransitionTime: at(12, 0, 0)}
	}
	old := newStatus("", health("data", slow, lost)).VolumeHealth[0]
	for _, tc := range []struct {
		name   string
		stored *v1.PodStatus
		volume string
		set    []v1.VolumeHealthCondition
		want   []v1.PodVolumeHealth // nil: unchanged
	}{
		{"24: same", newStatus("", health("data", slow, lost)), "data", []v1.VolumeHealthCondition{slow, lost}, nil},
		{"24: order and message", newStatus("", health("data", slow, lost)), "data", []v1.VolumeHealthCondition{lost, told}, nil},
		{"24: none and empty", newStatus(""), "data", []v1.VolumeHealthCondition{}, nil},
		{"24: emptied and empty", newStatus("", health("data")), "data", nil, nil},
		{"25: new volume goes last", newStatus("", health("data", slow, lost)), "logs", []v1.VolumeHealthCondition{lost}, []v1.PodVolumeHealth{old, entry("logs", lost)}},
		{"23: replaced as a whole", newStatus("", health("data", slow, lost), health("logs")), "data", []v1.VolumeHealthCondition{lost},
			[]v1.PodVolumeHealth{entry("data", lost), newStatus("", health("logs")).VolumeHealth[0]}},
		{"23: one more", newStatus("", health("data", slow)), "data", []v1.VolumeHealthCondition{slow, lost}, []v1.PodVolumeHealth{entry("data", slow, lost)}},
		{"23: healthy keeps its entry", newStatus("", health("data", slow)), "data", nil, []v1.PodVolumeHealth{entry("data")}},
		{"24: other reason", newStatus("", health("data", slow)), "data", []v1.VolumeHealthCondition{adverse(v1.VolumeHealthDegraded, "x")},
			[]v1.PodVolumeHealth{entry("data", adverse(v1.VolumeHealthDegraded, "x"))}},
		{"24: other status", newStatus("", health("data", slow)), "data", []v1.VolumeHealthCondition{adverse(v1.VolumeHealthInaccessible, "Slow")},
			[]v1.PodVolumeHealth{entry("data", adverse(v1.VolumeHealthInaccessible, "Slow"))}},
		{"a set has no duplicates", newStatus(""), "data", []v1.VolumeHealthCondition{slow, told, lost}, []v1.PodVolumeHealth{entry("data", slow, lost)}},
		{"no status yet", nil, "data", []v1.VolumeHealthCondition{slow}, []v1.PodVolumeHealth{entry("data", slow)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := tc.stored.DeepCopy()
			// Rule 27: the nanoseconds go.
			got, changed := SetVolumeHealth(tc.stored, tc.volume, tc.set, noon.Add(5*time.Nanosecond))
			if changed != (tc.want != nil) || changed != (got != nil) {
				t.Fatalf("SetVolumeHealth = %v, %v", got, changed)
			}
			if changed {
				check(t, "volume health", got.VolumeHealth, tc.want)
			}
			check(t, "input", tc.stored, before)
		})
	}
}

func TestSetVolumeHealth_DoesNotShareTheList(t *testing.T) {
	set := []v1.VolumeHealthCondition{adverse(v1.VolumeHealthDegraded, "Slow")}
	got, _ := SetVolumeHealth(newStatus(""), "data", set, noon)
	set[0].Reason = "edited"
	check(t, "reason", got.VolumeHealth[0].HealthConditions[0].Reason, "Slow")
}
