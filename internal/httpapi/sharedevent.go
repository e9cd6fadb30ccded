// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// sharedLineBytes bounds what is kept of one event in one format.
const sharedLineBytes = 16 << 10

// sharedEvent is what watches compute of an event.
type sharedEvent struct {
	once sync.Once
	seen sharedPod
	err  error

	mu    sync.Mutex
	lines map[sharedForm]*sharedLine // guarded by mu
}

// sharedPod is a pod as an event left it. Nobody may change it.
type sharedPod struct {
	*v1.Pod
	// status equals the pod's, and does not keep the rest of it in memory.
	status *v1.PodStatus
}

type sharedForm struct {
	kind   watch.EventType
	format format
}

type sharedLine struct {
	once sync.Once
	data []byte // nil: too large to be kept
	err  error
}

func newSharedPod(pod *v1.Pod) sharedPod {
	status := pod.Status
	return sharedPod{pod, &status}
}

// podOr returns the pod, which the first caller makes.
func (e *sharedEvent) podOr(make func() (*v1.Pod, error)) (sharedPod, error) {
	e.once.Do(func() {
		var pod *v1.Pod
		if pod, e.err = make(); e.err == nil {
			e.seen = newSharedPod(pod)
		}
	})
	return e.seen, e.err
}

// lineOr returns the bytes for one kind of change, which the first caller makes.
func (e *sharedEvent) lineOr(form sharedForm, encode func() ([]byte, error)) ([]byte, error) {
	e.mu.Lock()
	line := e.lines[form]
	if line == nil {
		line = &sharedLine{}
		if e.lines == nil {
			e.lines = make(map[sharedForm]*sharedLine, 1)
		}
		e.lines[form] = line
	}
	e.mu.Unlock()
	var own []byte
	line.once.Do(func() {
		own, line.err = encode()
		if len(own) <= sharedLineBytes {
			line.data = own
		}
	})
	switch {
	case line.err != nil:
		return nil, line.err
	case line.data != nil:
		return line.data, nil
	case own != nil:
		return own, nil
	}
	return encode()
}
