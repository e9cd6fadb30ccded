// SPDX-License-Identifier: Apache-2.0

package journal

import "bytes"

// Objects have no history to compare with: which of several copies is the newest,
// and whether it still holds, only the event that came with it can tell.

// objectCopy is the newest copy of a pod's object that was found.
type objectCopy struct {
	podObject
	doubt bool // it is not provably the newest
}

// newer returns the newer of two copies. Those of earlier releases do not say
// when they were stored; two that differ are both in doubt. So are two of one
// sequence: one belongs to a commit that a crash has undone.
func (c objectCopy) newer(found podObject) objectCopy {
	switch {
	case c.data == nil || found.sequence > c.sequence:
		return objectCopy{podObject: found}
	case found.sequence == c.sequence && !bytes.Equal(found.data, c.data):
		c.doubt = true
	}
	return c
}

// judgeObjects compares an event with the object of its pod: a removal takes
// earlier objects away, and an object came with an event of its own pod. Events
// are given in order of sequence, so a removal that follows is seen later.
func (s *salvager) judgeObjects(e *Event) {
	if c, ok := s.objects[e.UID]; ok && e.Kind == KindRemoved && e.Sequence > c.sequence {
		if c.sequence == 0 {
			// It may be of the life before or the one after.
			c.doubt = true
			s.objects[e.UID] = c
		} else {
			delete(s.objects, e.UID)
		}
	}
	for _, uid := range s.bySequence[e.Sequence] {
		if c := s.objects[uid]; uid != e.UID && c.sequence == e.Sequence {
			c.doubt = true
			s.objects[uid] = c
		}
	}
}
