// SPDX-License-Identifier: Apache-2.0

package manager

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/podstatus"
)

// livePods shows this node's pods as the API server has them.
type livePods interface {
	Get(namespace, name string) (*v1.Pod, bool)
	ByUID(uid types.UID) (*v1.Pod, bool)
}

// ownLookup is the pod source of a manager that was given none: the live pods, and
// those that callers passed in. Live ones win, as they are newer; static pods are
// only known from callers, their mirrors from either.
type ownLookup struct {
	memory *podMemory
	live   livePods // nil without a client
}

var _ PodLookup = ownLookup{}

func (l ownLookup) PodByUID(uid types.UID) (*v1.Pod, bool) {
	pod, ok := l.liveByUID(uid)
	if !ok {
		pod, ok = l.memory.pod(uid)
	}
	if !ok || podstatus.IsMirror(pod) { // Observe remembers mirrors, too
		return nil, false
	}
	return pod, true
}

func (l ownLookup) MirrorPod(source types.UID) (*v1.Pod, bool) {
	name, static := l.memory.static(source)
	if !static {
		return nil, false
	}
	return l.mirrorNamed(name)
}

func (l ownLookup) MirrorOf(source types.UID) (types.UID, bool) {
	name, static := l.memory.static(source)
	if !static {
		return "", false
	}
	if mirror, ok := l.mirrorNamed(name); ok {
		return mirror.UID, true
	}
	return "", true
}

func (l ownLookup) ResolveUID(uid types.UID) types.UID {
	name, mirror := l.memory.mirrorByUID(uid)
	if pod, ok := l.liveByUID(uid); ok && podstatus.IsMirror(pod) {
		name, mirror = nameOf(pod), true
	}
	if !mirror {
		return uid
	}
	if source, ok := l.memory.staticNamed(name); ok {
		return source
	}
	return uid
}

// mirrorNamed prefers the live mirror: the one a caller gave may be gone.
func (l ownLookup) mirrorNamed(name types.NamespacedName) (*v1.Pod, bool) {
	if l.live != nil {
		if pod, ok := l.live.Get(name.Namespace, name.Name); ok && podstatus.IsMirror(pod) {
			return pod, true
		}
	}
	return l.memory.mirrorNamed(name)
}

func (l ownLookup) liveByUID(uid types.UID) (*v1.Pod, bool) {
	if l.live == nil {
		return nil, false
	}
	return l.live.ByUID(uid)
}
