// SPDX-License-Identifier: Apache-2.0

package manager

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodLookup tells which pods the node runs and how static pods and their mirrors
// pair up (SEMANTICS 1-4). Implementations are called concurrently and while a
// pod's lock is held: they must not call the manager. What they return is only
// read.
type PodLookup interface {
	// PodByUID finds a pod by its own UID; a mirror pod is never found.
	PodByUID(uid types.UID) (*v1.Pod, bool)
	// MirrorPod finds the mirror pod of a static pod by the static pod's UID.
	MirrorPod(source types.UID) (*v1.Pod, bool)
	// MirrorOf has three answers: not static; static with its mirror's UID;
	// static and "": a static pod without mirror yet.
	MirrorOf(source types.UID) (mirror types.UID, static bool)
	// ResolveUID translates a mirror's UID to the static pod's. Any other UID,
	// known or not, stays as it is.
	ResolveUID(uid types.UID) types.UID
}

// Runtime answers for the programs that run containers.
type Runtime interface {
	// PodCouldHaveRunningContainers reports whether a container of the pod may
	// still run. While it does, a terminal phase is held back (SEMANTICS 79).
	PodCouldHaveRunningContainers(pod *v1.Pod) bool
}
