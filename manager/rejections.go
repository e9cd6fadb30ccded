// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// rejections counts refused updates and tells repetitions apart. A caller that
// offers the same illegal status again and again must not push a pod's history
// out of the journal: each refusal is journalled once per stored version.
type rejections struct {
	// mu guards the fields below.
	mu    sync.Mutex
	total uint64
	last  map[types.UID]map[rejection]struct{}
}

type rejection struct {
	version             journal.Version
	container, from, to string
}

// maxRejections bounds what is kept per pod; beyond it, repetitions may be
// journalled.
const maxRejections = 16

// maxRejectedPods bounds the pods that are remembered, likewise: those that never
// get a status are not removed either.
const maxRejectedPods = 10_000

func (r *rejections) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
}

// isNew remembers the refusal and reports whether it was not known yet.
func (r *rejections) isNew(uid types.UID, version journal.Version, t *podstatus.TransitionError) bool {
	key := rejection{version: version, container: t.Container, from: t.From, to: t.To}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.last[uid]
	if _, ok := known[key]; ok {
		return false
	}
	if r.last == nil || len(r.last) >= maxRejectedPods {
		r.last = make(map[types.UID]map[rejection]struct{})
	}
	if known == nil || len(known) >= maxRejections {
		known = make(map[rejection]struct{})
		r.last[uid] = known
	}
	known[key] = struct{}{}
	return true
}

func (r *rejections) clear(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, uid)
}

// retain forgets what is known about other UIDs.
func (r *rejections) retain(keep func(types.UID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.last {
		if !keep(uid) {
			delete(r.last, uid)
		}
	}
}

func (r *rejections) sum() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
