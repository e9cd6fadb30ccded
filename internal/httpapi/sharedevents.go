// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusstore/statusstore/journal"
)

const (
	// sharedEventCount bounds how many of the newest events are kept for the next
	// watch; one that is further behind computes for itself.
	sharedEventCount = 1024
	// sharedLineBytes bounds what is kept of one event in one format.
	sharedLineBytes = 16 << 10
)

// sharedEvents are the newest events as watches show them. A thousand watches of
// the same pods would otherwise compute each a thousand times, and leave no
// processor to those who write.
type sharedEvents struct {
	mu     sync.Mutex
	events map[journal.Sequence]*sharedEvent // guarded by mu, as are ring and next
	ring   [sharedEventCount]journal.Sequence
	next   int
}

// at returns an event's place; one of its own if the event is not among the newest.
func (s *sharedEvents) at(sequence, head journal.Sequence) *sharedEvent {
	if head-sequence >= sharedEventCount {
		return &sharedEvent{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.events[sequence]; ok {
		return e
	}
	if s.events == nil {
		s.events = make(map[journal.Sequence]*sharedEvent, sharedEventCount)
	}
	e := &sharedEvent{}
	delete(s.events, s.ring[s.next])
	s.events[sequence], s.ring[s.next] = e, sequence
	s.next = (s.next + 1) % sharedEventCount
	return e
}

// sharedEvent is one of them.
type sharedEvent struct {
	once sync.Once
	pod  *v1.Pod // nobody may change it
	err  error

	mu    sync.Mutex
	lines map[sharedForm]*sharedLine // guarded by mu
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

// podOr returns the pod, which the first caller makes.
func (e *sharedEvent) podOr(make func() (*v1.Pod, error)) (*v1.Pod, error) {
	e.once.Do(func() { e.pod, e.err = make() })
	return e.pod, e.err
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
