// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"

	"github.com/statusstore/statusstore/journal"
)

// leafIterator walks the branch pages of a tree and gives its leaves in order.
// Leaves are not read.
type leafIterator struct {
	file   *File
	branch []branchAt // from the root down to the branch above the leaves
	single uint64     // the root, if it is a leaf itself
	left   uint64     // pages that a tree without a cycle may still have
}

type branchAt struct {
	page  []byte
	count int
	i     int // next child
}

// leaves begins at the leaf that has, or would have, a sequence.
func (s *File) leaves(root uint64, from journal.Sequence) (leafIterator, error) {
	it := leafIterator{file: s, left: s.meta.highWater}
	key := binary.BigEndian.AppendUint64(nil, uint64(from))
	for id := root; ; {
		flags, count, page, err := s.page(id)
		switch {
		case err != nil:
			return it, err
		case flags == flagLeaf && len(it.branch) == 0:
			it.single = id
			return it, nil
		case flags == flagLeaf:
			// The way down took it; the iterator gives it again.
			it.branch[len(it.branch)-1].i--
			return it, nil
		case flags != flagBranch || count == 0 || len(it.branch) > maxDepth:
			return it, unsound("page %d is not of a tree", id)
		}
		b := branchAt{page: page, count: count}
		for b.i < count {
			first, child, ok := branchElement(page, b.i)
			if !ok {
				return it, unsound("page %d: element %d is outside", id, b.i)
			}
			if b.i > 0 && bytes.Compare(first, key) > 0 {
				break
			}
			id = child
			b.i++
		}
		it.branch = append(it.branch, b)
	}
}

func (it *leafIterator) next() (id uint64, ok bool, err error) {
	if it.single != 0 {
		id, it.single = it.single, 0
		return id, true, nil
	}
	for top := len(it.branch) - 1; top >= 0; {
		b := &it.branch[top]
		if b.i == b.count {
			top--
			continue
		}
		_, child, inside := branchElement(b.page, b.i)
		b.i++
		if !inside || it.left == 0 {
			return 0, false, unsound("the tree of events is not one")
		}
		it.left--
		if top == len(it.branch)-1 {
			return child, true, nil
		}
		flags, count, page, err := it.file.page(child)
		if err != nil {
			return 0, false, err
		}
		if flags != flagBranch {
			return 0, false, unsound("page %d: leaves are not on one level", child)
		}
		top++
		it.branch[top] = branchAt{page: page, count: count}
	}
	return 0, false, nil
}
