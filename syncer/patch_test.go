// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/statusstore/statusstore/podstatus"
)

// applied returns what a server makes of a patch.
func applied(t *testing.T, pod *v1.Pod, patch []byte) *v1.Pod {
	t.Helper()
	before, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, v1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	var got v1.Pod
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

func TestStatusPatch(t *testing.T) {
	gated := running(1)
	setCondition(&gated, "example.com/gate", v1.ConditionTrue, noon)
	less := running(1)
	less.HostIP, less.PodIPs, less.NominatedNodeName, less.ContainerStatuses = "", nil, "", less.ContainerStatuses[:1]
	less.Conditions = less.Conditions[1:]
	more := running(1)
	more.PodIPs = append(more.PodIPs, v1.PodIP{IP: "fd00::1"})
	more.NominatedNodeName = "other"
	tests := []struct {
		name         string
		live, status v1.PodStatus
	}{
		{"from nothing", v1.PodStatus{}, running(1)},
		{"restart count", running(1), running(2)},
		{"ended", running(1), ended(v1.PodFailed, 1)},
		{"SEMANTICS 81: fields go away", more, less},
		{"SEMANTICS 77: an owned condition goes, a foreign one stays", gated, func() v1.PodStatus { s := *gated.DeepCopy(); s.Conditions = s.Conditions[1:]; return s }()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			live := liveOf(tt.live)
			live.ResourceVersion, live.Labels = "5", map[string]string{"a": "b"}
			patch, err := statusPatch(live, &tt.status)
			if err != nil || patch == nil {
				t.Fatalf("patch %s, error %v", patch, err)
			}
			if text := string(patch); !strings.Contains(text, `"uid":"uid-a"`) || strings.Contains(text, "resourceVersion") || strings.Contains(text, "labels") {
				t.Errorf("patch %s", text)
			}
			got := applied(t, live, patch)
			want := podstatus.Normalise(live, &tt.status)
			if !podstatus.Equal(podstatus.Normalise(got, &got.Status), want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, &got.Status))
			}
			if got.Labels["a"] != "b" || got.UID != "uid-a" {
				t.Errorf("metadata changed: %+v", got.ObjectMeta)
			}
		})
	}
}

func TestStatusPatch_Empty(t *testing.T) {
	// Less than a second doesn't survive JSON, so it is no difference.
	status := running(1)
	start := metav1.NewTime(noon.Add(300 * time.Millisecond))
	status.StartTime = &start
	patch, err := statusPatch(liveOf(running(1)), &status)
	if err != nil || patch != nil {
		t.Errorf("patch %s, error %v", patch, err)
	}
}

// TestStatusPatch_LeavesWhatItDoesNotKnow: a condition that was added on the
// server after the live object was seen.
func TestStatusPatch_LeavesWhatItDoesNotKnow(t *testing.T) {
	status := running(2)
	patch, err := statusPatch(liveOf(running(1)), &status)
	if err != nil {
		t.Fatal(err)
	}
	server := liveOf(running(1))
	setCondition(&server.Status, "example.com/gate", v1.ConditionTrue, noon)
	got := applied(t, server, patch)
	if c := condition(got.Status.Conditions, "example.com/gate"); c == nil || c.Status != v1.ConditionTrue {
		t.Errorf("conditions %+v", got.Status.Conditions)
	}
}

func BenchmarkStatusPatch(b *testing.B) {
	live, status := liveOf(running(1)), running(2)
	for b.Loop() {
		if _, err := statusPatch(live, &status); err != nil {
			b.Fatal(err)
		}
	}
}
