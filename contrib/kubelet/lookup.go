// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/statusstore/statusstore/manager"
)

// podLookup is the kubelet's pod manager as our manager asks it, and the pods that
// callers passed in: a pod whose end is reported is often gone from the pod manager.
type podLookup struct {
	pods status.PodManager

	// mu guards given. The pods in it are the callers', and only read.
	mu    sync.Mutex
	given map[types.UID]*v1.Pod
}

var _ manager.PodLookup = (*podLookup)(nil)

func newPodLookup(pods status.PodManager) *podLookup {
	return &podLookup{pods: pods, given: make(map[types.UID]*v1.Pod)}
}

func (l *podLookup) PodByUID(uid types.UID) (*v1.Pod, bool) { return l.pods.GetPodByUID(uid) }

func (l *podLookup) MirrorPod(source types.UID) (*v1.Pod, bool) {
	pod, ok := l.find(source)
	if !ok {
		return nil, false
	}
	return l.pods.GetMirrorPodByPod(pod)
}

func (l *podLookup) MirrorOf(source types.UID) (types.UID, bool) {
	pod, ok := l.pods.GetPodByUID(source)
	if !ok {
		// A static pod that was removed stays paired while its mirror is known.
		// Only the table of all pairs tells.
		mirrors, _ := l.pods.GetUIDTranslations()
		mirror, static := mirrors[kubetypes.ResolvedPodUID(source)]
		return types.UID(mirror), static
	}
	if !kubetypes.IsStaticPod(pod) {
		return "", false
	}
	if mirror, ok := l.pods.GetMirrorPodByPod(pod); ok {
		return mirror.UID, true
	}
	return "", true
}

func (l *podLookup) ResolveUID(uid types.UID) types.UID {
	return types.UID(l.pods.TranslatePodUID(uid))
}

// find prefers the pod manager: what a caller passed in may be older.
func (l *podLookup) find(uid types.UID) (*v1.Pod, bool) {
	if pod, ok := l.pods.GetPodByUID(uid); ok {
		return pod, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, ok := l.given[uid]
	return pod, ok
}

func (l *podLookup) give(pod *v1.Pod) {
	if kubetypes.IsMirrorPod(pod) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given[pod.UID] = pod
}

func (l *podLookup) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.given, uid)
}

// retain forgets all other pods.
func (l *podLookup) retain(keep func(types.UID) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.given, func(uid types.UID, _ *v1.Pod) bool { return !keep(uid) })
}
