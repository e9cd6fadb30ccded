// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestProbeResults(t *testing.T) {
	status := &v1.PodStatus{
		InitContainerStatuses: []v1.ContainerStatus{{Name: "sidecar", ContainerID: "containerd://s", Ready: true, Started: new(true)}},
		ContainerStatuses: []v1.ContainerStatus{
			{Name: "new"}, // without an ID yet
			{Name: "app", ContainerID: "containerd://a", Started: new(false)},
			{Name: "quiet", ContainerID: "containerd://q", Ready: true},
		},
		EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "debug", ContainerID: "containerd://d", Ready: true, Started: new(true)}},
	}
	for _, test := range []struct {
		status             *v1.PodStatus
		id                 string
		readiness, startup ProbeResult
	}{
		{status, "containerd://s", ProbeSuccess, ProbeSuccess},
		{status, "containerd://a", ProbeFailure, ProbeFailure},
		{status, "containerd://q", ProbeSuccess, ProbeUnknown},
		{status, "containerd://d", ProbeUnknown, ProbeUnknown}, // no probes there
		{status, "containerd://a2", ProbeUnknown, ProbeUnknown},
		{status, "", ProbeUnknown, ProbeUnknown},
		{nil, "containerd://a", ProbeUnknown, ProbeUnknown},
	} {
		if got := Readiness(test.status, test.id); got != test.readiness {
			t.Errorf("readiness of %q: %v, want %v", test.id, got, test.readiness)
		}
		if got := Startup(test.status, test.id); got != test.startup {
			t.Errorf("startup of %q: %v, want %v", test.id, got, test.startup)
		}
	}
	if got := ProbeUnknown.String() + ProbeFailure.String() + ProbeSuccess.String(); got != "unknownfailuresuccess" {
		t.Errorf("got %q", got)
	}
}
