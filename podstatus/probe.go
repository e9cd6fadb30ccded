// SPDX-License-Identifier: Apache-2.0

package podstatus

import v1 "k8s.io/api/core/v1"

// ProbeResult is what a stored status knows of a container's probe. It belongs to
// one container ID: a restarted container begins as unknown, never with the
// result of the one before.
type ProbeResult uint8

// The results. Unknown is no failure: nobody has said anything about this container.
const (
	ProbeUnknown ProbeResult = iota
	ProbeFailure
	ProbeSuccess
)

// String returns "unknown", "failure" or "success".
func (r ProbeResult) String() string {
	return [...]string{ProbeUnknown: "unknown", ProbeFailure: "failure", ProbeSuccess: "success"}[r]
}

func probeResult(ok bool) ProbeResult {
	if ok {
		return ProbeSuccess
	}
	return ProbeFailure
}

// Readiness returns what the status says of the readiness of the container with
// the full ID, runtime://id. A nil status knows nothing.
func Readiness(status *v1.PodStatus, containerID string) ProbeResult {
	c := container(status, containerID)
	if c == nil {
		return ProbeUnknown
	}
	return probeResult(c.Ready)
}

// Startup returns what the status says of the start of the container with the full
// ID; unknown also if its started is not set.
func Startup(status *v1.PodStatus, containerID string) ProbeResult {
	c := container(status, containerID)
	if c == nil || c.Started == nil {
		return ProbeUnknown
	}
	return probeResult(*c.Started)
}

func container(status *v1.PodStatus, containerID string) *v1.ContainerStatus {
	if status == nil || containerID == "" {
		return nil
	}
	return findByID(status, containerID)
}
