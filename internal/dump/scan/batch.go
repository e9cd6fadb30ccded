// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"slices"

	"github.com/statusstore/statusstore/journal"
)

// batch is some leaf pages, read and parsed by one worker.
type batch struct {
	pages   []uint64
	inline  []byte // instead of pages
	records []Record
	// first and last are the sequences that were parsed, kept or not; 0 is none.
	first, last journal.Sequence
	foreign     bool // a key is not a journal's
	end         bool // the last wanted record was seen
	err         error
	done        bool
	nanos       int64 // of the last record that was parsed
	worker
}

// maxGap is how many bytes between two leaves are read along rather than apart.
const maxGap = 16 << 10

// reset makes a batch as good as new, but for its memory and what its worker knows.
func (b *batch) reset() {
	b.pages, b.records = b.pages[:0], b.records[:0]
	b.first, b.last, b.nanos = 0, 0, 0
	b.foreign, b.end, b.err, b.done = false, false, nil, false
}

// read fills in the records up to the first thing that is not sound.
func (b *batch) read(s *File, o *Options) (err error) {
	if b.inline != nil {
		if len(b.inline) < pageHeader {
			return unsound("bucket events is short")
		}
		return b.leaf(s, o, b.inline, int(le.Uint16(b.inline[10:])))
	}
	defer faults(&err)()
	size := uint64(s.meta.pageSize)
	for i := 0; i < len(b.pages) && !b.end; {
		// A run of leaves that lie close together is one read.
		first, after, n := b.pages[i], b.pages[i]+1, 1
		for i+n < len(b.pages) && b.pages[i+n] >= after && b.pages[i+n]-after <= maxGap/size {
			after = b.pages[i+n] + 1
			n++
		}
		if first < 2 || after > s.meta.highWater {
			return unsound("page %d is outside of the file", after-1)
		}
		s.touch(first*size, after*size)
		for _, id := range b.pages[i : i+n] {
			if err := b.page(s, o, id, s.data[id*size:]); err != nil || b.end {
				return err
			}
		}
		i += n
	}
	return nil
}

// page parses one leaf page, which begins at data.
func (b *batch) page(s *File, o *Options, id uint64, data []byte) error {
	flags, count, overflow, err := s.checkPage(id, data)
	if err != nil {
		return err
	}
	if flags != flagLeaf {
		return unsound("page %d is no leaf", id)
	}
	return b.leaf(s, o, data[:(overflow+1)*uint64(s.meta.pageSize)], count)
}

func (b *batch) leaf(s *File, o *Options, page []byte, count int) error {
	for i := range count {
		flags, key, pair, ok := leafPair(page, i)
		if !ok {
			return unsound("element %d is outside of its page", i)
		}
		if key != keyBytes {
			b.foreign = true
			continue
		}
		seq := journal.Sequence(be.Uint64(pair))
		if seq < o.From {
			b.foreign = b.foreign || seq == 0
			continue
		}
		if seq > o.To {
			b.end = true
			b.foreign = b.foreign || seq > s.Head.Sequence
			return nil
		}
		if flags&leafBucket != 0 || b.last != 0 && (seq <= b.last || s.missing(b.last+1, seq)) {
			return unsound("sequence %d is out of place", seq)
		}
		n := len(b.records)
		if n == cap(b.records) {
			b.records = slices.Grow(b.records, max(n, 16))
		}
		r := &b.records[:n+1][n]
		if err := r.parse(pair); err != nil {
			return err
		}
		if o.Keep == nil || o.Keep(r) {
			if o.Pods != nil {
				r.count(o.Pods, &b.worker)
			}
			r.Before = b.nanos
			b.records = b.records[:n+1]
		}
		// From here on, a fault does not take the record back.
		if b.first == 0 {
			b.first = seq
		}
		b.last, b.nanos = seq, r.Nanos
	}
	return nil
}
