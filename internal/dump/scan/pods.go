// SPDX-License-Identifier: Apache-2.0

package scan

import "sync"

// Pods numbers pods by UID, from 1, in no order: what is counted of each needs no
// map, and its UID is read once, by the worker that has it in its cache. The zero
// value is ready, for any number of scans.
type Pods struct {
	mu    sync.Mutex
	known map[string]*numbered
}

type numbered struct {
	uid    string
	number int32
}

// pod finds a pod, or gives it a number.
func (p *Pods) pod(uid []byte) *numbered {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.known[string(uid)]
	if n == nil {
		if p.known == nil {
			p.known = map[string]*numbered{}
		}
		n = &numbered{string(uid), int32(len(p.known) + 1)}
		p.known[n.uid] = n
	}
	return n
}

const (
	// seenBits is for more pods than a node has.
	seenBits = 10
	// seenPlaces are looked at for a pod. Those that find none free take turns.
	seenPlaces = 4
)

// seen is what one worker knows of the numbers, by a hash of the UID.
type seen [1<<seenBits + seenPlaces - 1]*numbered

// number is that of a UID; 0 if there is none.
func (s *seen) number(pods *Pods, uid []byte) int32 {
	if len(uid) == 0 {
		return 0
	}
	var end [8]byte
	copy(end[:], uid[max(len(uid)-len(end), 0):])
	places := s[le.Uint64(end[:])*0x9e3779b97f4a7c15>>(64-seenBits):][:seenPlaces]
	for i, p := range places {
		if p == nil {
			places[i] = pods.pod(uid)
			return places[i].number
		}
		if p.uid == string(uid) {
			return p.number
		}
	}
	places[0] = pods.pod(uid)
	return places[0].number
}
