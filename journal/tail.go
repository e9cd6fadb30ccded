// SPDX-License-Identifier: Apache-2.0

package journal

import "sync"

// tail tells readers that the head moved.
type tail struct {
	mu      sync.Mutex
	head    Sequence
	changed chan struct{} // closed when the head moves
	closed  bool
}

func (t *tail) init() { t.changed = make(chan struct{}) }

func (t *tail) publish(s Sequence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s == t.head || t.closed {
		return
	}
	t.head = s
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.changed)
	}
}

// Head returns the highest committed sequence, and a channel that is closed
// when there is a higher one or the journal is closed. All events up to the
// head are durable.
func (j *Journal) Head() (Sequence, <-chan struct{}) {
	j.tail.mu.Lock()
	defer j.tail.mu.Unlock()
	return j.tail.head, j.tail.changed
}
