// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/podstatus"
)

// maxStatusBytes is what a status may have as protobuf: the API server's store
// takes objects of about 1.5 MiB, and would refuse a larger one for ever.
const maxStatusBytes = 1 << 20

// checkStatus refuses what is no status, and what could never be sent.
func checkStatus(pod *v1.Pod) error {
	switch pod.Status.Phase {
	case v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown:
	case "":
		if equality.Semantic.DeepEqual(pod.Status, v1.PodStatus{}) {
			return invalid(pod.Name, "status", "is empty: there is nothing to store")
		}
	default:
		return invalid(pod.Name, "status.phase", fmt.Sprintf("%q is none of Pending, Running, Succeeded, Failed and Unknown", pod.Status.Phase))
	}
	if pod.Status.Size() <= maxStatusBytes {
		return nil
	}
	// Long termination messages are cut when the status is stored.
	if n := podstatus.Normalise(pod, &pod.Status).Size(); n > maxStatusBytes {
		return tooLarge("the status has %d bytes, at most %d are allowed: the API server would never take it", n, maxStatusBytes)
	}
	return nil
}

// identity is which pod a body says that it is about.
type identity struct {
	uid     types.UID
	created metav1.Time
	static  bool // or the mirror of a static pod
}

// checkLive refuses a status of another pod than the one that the API server has
// under the name, where it could never be sent. Static pods and their mirrors have
// two UIDs. A pod that was created later may not have been shown yet.
func (a *api) checkLive(namespace, name string, given identity) error {
	if a.Live == nil || !a.Live.HasSynced() || given.static {
		return nil
	}
	live, ok := a.Live.Get(namespace, name)
	if !ok || live.UID == given.uid || podstatus.IsMirror(live) || live.CreationTimestamp.Before(&given.created) {
		return nil
	}
	return apierrors.NewConflict(podResource, name, fmt.Errorf("the pod of this name on the API server has the UID %s, not %s", live.UID, given.uid))
}
