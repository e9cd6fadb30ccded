// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/podstatus"
)

// podMemory remembers the pods that callers passed in, without status, so that
// the manager can look them up before the API server was ever reached, and after a
// restart: an object goes to the journal with the first event after it changed.
// A nil podMemory remembers nothing.
//
// Objects are kept encoded. That is a quarter of the memory, and what a lookup
// returns is nobody else's.
type podMemory struct {
	// mu guards the fields below.
	mu      sync.RWMutex
	pods    map[types.UID]rememberedPod
	statics map[types.NamespacedName]types.UID
	mirrors map[types.NamespacedName]*v1.Pod // given by callers; not in the journal
}

// rememberedPod is a pod without status as protobuf. The zero value is none.
type rememberedPod struct {
	name    types.NamespacedName
	static  bool
	object  []byte
	durable bool // object is in the journal
}

func newPodMemory() *podMemory {
	return &podMemory{
		pods:    make(map[types.UID]rememberedPod),
		statics: make(map[types.NamespacedName]types.UID),
		mirrors: make(map[types.NamespacedName]*v1.Pod),
	}
}

// remember encodes a pod; nothing is kept until seen or stored.
func (m *podMemory) remember(pod *v1.Pod) (rememberedPod, error) {
	if m == nil {
		return rememberedPod{}, nil
	}
	bare := *pod
	bare.Status = v1.PodStatus{}
	bare.ManagedFields = nil
	bare.ResourceVersion = "" // changes with each patch, and says nothing here
	object, err := bare.Marshal()
	if err != nil {
		return rememberedPod{}, &InvalidError{Field: "pod", Detail: err.Error()}
	}
	return rememberedPod{name: nameOf(pod), static: isSource(pod), object: object}, nil
}

// toPersist returns what an event must carry: nil if the journal has it already.
func (m *podMemory) toPersist(uid types.UID, p rememberedPod) []byte {
	if m == nil || p.object == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if old := m.pods[uid]; old.durable && bytes.Equal(old.object, p.object) {
		return nil
	}
	return p.object
}

// stored keeps a pod whose event is durable.
func (m *podMemory) stored(uid types.UID, p rememberedPod) {
	p.durable = true
	m.keep(uid, p)
}

// announce keeps a pod whose event is about to be committed: who hears of the
// event must find the pod, and a static pod's UIDs must be known, or its status
// has nowhere to go. The function it returns takes that back.
func (m *podMemory) announce(uid types.UID, p rememberedPod) (withdraw func()) {
	if m == nil || p.object == nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, known := m.pods[uid]
	if known && bytes.Equal(old.object, p.object) {
		return func() {}
	}
	source, linked := m.statics[p.name]
	p.durable = false
	m.pods[uid] = p
	if p.static {
		m.statics[p.name] = uid
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		restore(m.pods, uid, old, known)
		if p.static && m.statics[p.name] == uid {
			restore(m.statics, p.name, source, linked)
		}
	}
}

func restore[K comparable, V any](in map[K]V, key K, value V, known bool) {
	if known {
		in[key] = value
		return
	}
	delete(in, key)
}

// seen keeps a pod whose status did not change.
func (m *podMemory) seen(uid types.UID, p rememberedPod) {
	p.durable = false
	m.keep(uid, p)
}

func (m *podMemory) keep(uid types.UID, p rememberedPod) {
	if m == nil || p.object == nil {
		return
	}
	m.mu.RLock()
	old := m.pods[uid]
	m.mu.RUnlock()
	if (old.durable || !p.durable) && bytes.Equal(old.object, p.object) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[uid] = p
	if p.static {
		m.statics[p.name] = uid
	}
}

// load takes an object from the journal.
func (m *podMemory) load(uid types.UID, object []byte) error {
	pod := new(v1.Pod)
	if err := pod.Unmarshal(object); err != nil {
		return fmt.Errorf("decode pod %s: %w", uid, err)
	}
	m.stored(uid, rememberedPod{name: nameOf(pod), static: isSource(pod), object: object})
	return nil
}

// mirror keeps a mirror pod that a caller gave.
func (m *podMemory) mirror(pod *v1.Pod) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.statics[nameOf(pod)]; ok {
		m.mirrors[nameOf(pod)] = pod.DeepCopy()
	}
}

func (m *podMemory) forget(uid types.UID) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pods[uid]
	if !ok {
		return
	}
	delete(m.pods, uid)
	if m.statics[p.name] == uid {
		delete(m.statics, p.name)
		delete(m.mirrors, p.name)
	}
}

// pod returns a remembered pod, decoded for the caller.
func (m *podMemory) pod(uid types.UID) (*v1.Pod, bool) {
	if m == nil {
		return nil, false
	}
	m.mu.RLock()
	p, ok := m.pods[uid]
	m.mu.RUnlock()
	if !ok {
		return nil, false
	}
	pod := new(v1.Pod)
	if err := pod.Unmarshal(p.object); err != nil {
		return nil, false // encoded here, or decoded once by load
	}
	return pod, true
}

// static returns the name of a static pod.
func (m *podMemory) static(uid types.UID) (types.NamespacedName, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p, ok := m.pods[uid]
	return p.name, ok && p.static
}

// staticNamed returns the UID of the static pod of a name.
func (m *podMemory) staticNamed(name types.NamespacedName) (types.UID, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	uid, ok := m.statics[name]
	return uid, ok
}

// mirrorNamed returns the mirror pod of a name that a caller gave.
func (m *podMemory) mirrorNamed(name types.NamespacedName) (*v1.Pod, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pod, ok := m.mirrors[name]
	return pod, ok
}

// mirrorByUID returns the name of a mirror pod that a caller gave.
func (m *podMemory) mirrorByUID(uid types.UID) (types.NamespacedName, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for name, pod := range m.mirrors { // a handful: the mirrors that were given
		if pod.UID == uid {
			return name, true
		}
	}
	return types.NamespacedName{}, false
}

// isSource tells a static pod from its mirror, which has its annotations.
func isSource(pod *v1.Pod) bool { return podstatus.IsStatic(pod) && !podstatus.IsMirror(pod) }

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
