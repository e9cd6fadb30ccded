// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Counts are totals over all pods. They are kept, not computed.
type Counts struct {
	Pods    int // pods with a status
	Pending int // pods whose newest version is not acked
	// AckedVersionsBehind sums up how many versions the acks are behind.
	AckedVersionsBehind uint64
}

func (c *Counts) add(e *Entry) {
	c.Pods++
	if e.Pending() {
		c.Pending++
		c.AckedVersionsBehind += uint64(e.Version - e.Acked)
	}
}

func (c *Counts) subtract(e *Entry) {
	c.Pods--
	if e.Pending() {
		c.Pending--
		c.AckedVersionsBehind -= uint64(e.Version - e.Acked)
	}
}

// table holds the entries with their index by name and their totals.
type table struct {
	entries map[types.UID]*Entry
	// names has more than one UID where a pod was recreated under its name.
	names  map[types.NamespacedName][]types.UID
	counts Counts
}

func newTable() table {
	return table{
		entries: make(map[types.UID]*Entry),
		names:   make(map[types.NamespacedName][]types.UID),
	}
}

// replace puts next, of the same UID, in the place of prev. Either may be nil.
func (t *table) replace(prev, next *Entry) {
	if prev == next {
		return
	}
	renamed := prev == nil || next == nil || prev.key() != next.key()
	if prev != nil {
		t.counts.subtract(prev)
		delete(t.entries, prev.UID)
		if renamed {
			t.unname(prev)
		}
	}
	if next != nil {
		t.counts.add(next)
		t.entries[next.UID] = next
		if renamed {
			t.names[next.key()] = append(t.names[next.key()], next.UID)
		}
	}
}

func (t *table) unname(e *Entry) {
	uids := slices.DeleteFunc(t.names[e.key()], func(uid types.UID) bool { return uid == e.UID })
	if len(uids) == 0 {
		delete(t.names, e.key())
		return
	}
	t.names[e.key()] = uids
}

// byName returns the entries of a name, newest event first.
func (t *table) byName(key types.NamespacedName) []*Entry {
	uids := t.names[key]
	if len(uids) == 0 {
		return nil
	}
	found := make([]*Entry, 0, len(uids))
	for _, uid := range uids {
		found = append(found, t.entries[uid])
	}
	slices.SortFunc(found, func(a, b *Entry) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return found
}

func (t *table) list() []*Entry {
	return sorted(slices.Collect(maps.Values(t.entries)))
}

func sorted(entries []*Entry) []*Entry {
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return entries
}

func (e *Entry) key() types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}
