// SPDX-License-Identifier: Apache-2.0

package podstatus

import v1 "k8s.io/api/core/v1"

// Kinds of containers in a Termination.
const (
	KindContainer          = "container"
	KindInitContainer      = "init_container"
	KindEphemeralContainer = "ephemeral_container"
)

// Termination is a container that ended with an update.
type Termination struct {
	// Container is its name.
	Container string
	// Kind is one of the Kind constants.
	Kind string
	// ExitCode and Reason are those of the terminated state.
	ExitCode int32
	Reason   string
}

// newlyTerminated lists what is terminated in next and was not, or did not exist,
// in previous: once per name and kind (SEMANTICS 53). Nil when there is none.
func newlyTerminated(previous, next *v1.PodStatus) []Termination {
	var out []Termination
	out = appendTerminated(out, KindInitContainer, previous.InitContainerStatuses, next.InitContainerStatuses)
	out = appendTerminated(out, KindContainer, previous.ContainerStatuses, next.ContainerStatuses)
	return appendTerminated(out, KindEphemeralContainer, previous.EphemeralContainerStatuses, next.EphemeralContainerStatuses)
}

func appendTerminated(out []Termination, kind string, previous, next []v1.ContainerStatus) []Termination {
	start := len(out)
	for i := range next {
		name, t := next[i].Name, next[i].State.Terminated
		if t == nil || anyTerminated(previous, name) || named(out[start:], name) {
			continue
		}
		out = append(out, Termination{Container: name, Kind: kind, ExitCode: t.ExitCode, Reason: t.Reason})
	}
	return out
}

// anyTerminated looks at all statuses of that name: should one have been listed
// twice, its end must still not be counted at each update.
func anyTerminated(statuses []v1.ContainerStatus, name string) bool {
	for i := range statuses {
		if statuses[i].Name == name && statuses[i].State.Terminated != nil {
			return true
		}
	}
	return false
}

func named(list []Termination, container string) bool {
	for i := range list {
		if list[i].Container == container {
			return true
		}
	}
	return false
}
