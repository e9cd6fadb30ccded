// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func TestChangesBetween(t *testing.T) {
	waiting := func() *v1.PodStatus {
		s := running("app")
		s.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		return s
	}
	reordered := running("app", "side")
	reordered.ContainerStatuses[0], reordered.ContainerStatuses[1] = reordered.ContainerStatuses[1], reordered.ContainerStatuses[0]
	ips := func(all ...string) *v1.PodStatus {
		s := running("app")
		for _, ip := range all {
			s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
		}
		return s
	}
	tests := []struct {
		name     string
		old, new *v1.PodStatus
		want     []Change
	}{
		{"equal", running("app"), running("app"), nil},
		{"order of a list", running("app", "side"), reordered, nil},
		{"both none", nil, nil, nil},
		{"state", waiting(), running("app"), []Change{
			{"containerStatuses[app].state.running", nil, map[string]any{}},
			{"containerStatuses[app].state.waiting.reason", "CrashLoopBackOff", nil}}},
		{"element added", ips("10.0.0.1"), ips("10.0.0.1", "10.0.0.2"), []Change{{"podIPs[10.0.0.2].ip", nil, "10.0.0.2"}}},
		{"list added", ips(), ips("10.0.0.1"), []Change{{"podIPs[10.0.0.1].ip", nil, "10.0.0.1"}}},
		{"first status", nil, &v1.PodStatus{Phase: v1.PodPending}, []Change{{"phase", nil, "Pending"}}},
		{"number", restarted(1, 1, ""), restarted(2, 1, ""), []Change{{"containerStatuses[app].restartCount", 1.0, 2.0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := changesBetween(tt.old, tt.new)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
