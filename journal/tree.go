// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The engine follows page numbers without doubt: a cycle ends in a stack
// overflow that nothing can recover from, and a live page on the freelist is
// overwritten by the next commit. So the structure is walked with plain reads
// before anything is mapped: branch pages and the freelist at each open, which
// is about a hundredth of the file; leaf pages too where all is read anyway.

const (
	branchPage   = 0x01
	freelistPage = 0x10
	// maxTreeDepth is far beyond any real tree: 4 levels hold a billion keys.
	maxTreeDepth = 16
)

// depth says how far a structure check goes.
type depth uint8

const (
	branches depth = iota // what an open can afford
	leaves                // the header of each page
)

// errCycle marks damage that makes a file unsafe to read at all.
var errCycle = errors.New("page is used twice")

// treeCheck walks the pages of one state of the file.
type treeCheck struct {
	f        io.ReaderAt
	meta     boltMeta
	depth    depth
	used     []uint64 // bit per page
	problems []error
}

// checkTree returns what is wrong with the structure. Those problems that are
// errCycle make it unsafe to let the engine read the file.
func checkTree(f io.ReaderAt, m boltMeta, d depth) []error {
	c := &treeCheck{f: f, meta: m, depth: d, used: make([]uint64, m.highWater/64+1)}
	if !c.use(m.root, 1, "root bucket") {
		return c.problems
	}
	root, err := c.page(m.root)
	if err != nil {
		c.problem("root bucket: %w", err)
		return c.problems
	}
	c.bucket(m.root, root, 0)
	c.freelist()
	return c.problems
}

func (c *treeCheck) problem(format string, args ...any) {
	if len(c.problems) < 100 {
		c.problems = append(c.problems, fmt.Errorf(format, args...))
	}
}

// use claims n pages; each belongs to one parent only.
func (c *treeCheck) use(id, n uint64, what string) bool {
	if id < 2 || id >= c.meta.highWater || n > c.meta.highWater-id {
		c.problem("%s: page %d is outside of the file", what, id)
		return false
	}
	for p := id; p < id+n; p++ {
		if c.used[p/64]&(1<<(p%64)) != 0 {
			c.problem("%s: page %d: %w", what, p, errCycle)
			return false
		}
		c.used[p/64] |= 1 << (p % 64)
	}
	return true
}

// page reads a page whole, the pages that it flows over into included.
func (c *treeCheck) page(id uint64) ([]byte, error) {
	size := int64(c.meta.pageSize)
	page := make([]byte, size)
	if _, err := c.f.ReadAt(page, int64(id)*size); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	le := binary.LittleEndian
	overflow := uint64(le.Uint32(page[12:]))
	switch flags := le.Uint16(page[8:]); {
	case le.Uint64(page) != id:
		return nil, fmt.Errorf("page %d says it is page %d", id, le.Uint64(page))
	case flags != branchPage && flags != leafPage && flags != freelistPage:
		return nil, fmt.Errorf("page %d has no valid type (%#x)", id, flags)
	case overflow >= c.meta.highWater-id:
		return nil, fmt.Errorf("page %d flows over into %d pages", id, overflow)
	case overflow > 0:
		page = append(page, make([]byte, int64(overflow)*size)...)
		if _, err := c.f.ReadAt(page, int64(id)*size); err != nil {
			return nil, fmt.Errorf("page %d: %w", id, err)
		}
	}
	return page, nil
}

// bucket walks the tree of one bucket, whose root page is given, and the buckets
// inside. The root page itself was claimed by the caller.
func (c *treeCheck) bucket(id uint64, page []byte, level int) {
	if level > maxTreeDepth {
		c.problem("page %d: tree is deeper than %d", id, maxTreeDepth)
		return
	}
	le := binary.LittleEndian
	if extra := uint64(len(page))/uint64(c.meta.pageSize) - 1; extra > 0 && !c.use(id+1, extra, "overflow") {
		return
	}
	count := int(le.Uint16(page[10:]))
	if pageHeaderSize+count*leafElement > len(page) {
		c.problem("page %d: %d elements do not fit", id, count)
		return
	}
	switch le.Uint16(page[8:]) {
	case branchPage:
		c.children(id, page, count, level)
	case leafPage:
		scanElements(page, func(flags uint32, _, value []byte) {
			if flags&bucketElement != 0 && len(value) >= inlineHeader {
				c.nested(le.Uint64(value), level)
			}
		})
	default:
		c.problem("page %d: a freelist inside a tree", id)
	}
}

// nested walks a bucket that has pages of its own; 0 means that it is inline.
func (c *treeCheck) nested(root uint64, level int) {
	if root == 0 || !c.use(root, 1, "bucket") {
		return
	}
	page, err := c.page(root)
	if err != nil {
		c.problem("bucket: %w", err)
		return
	}
	c.bucket(root, page, level+1)
}

// children claims all children of a branch page, then walks those that must be
// read. All children of a branch are of one kind in a sound tree, so at depth
// branches the first one tells.
func (c *treeCheck) children(id uint64, page []byte, count, level int) {
	le := binary.LittleEndian
	if count == 0 {
		c.problem("page %d: branch without children", id)
	}
	ids := make([]uint64, 0, count)
	for i := range count {
		child := le.Uint64(page[pageHeaderSize+i*leafElement+8:])
		if c.use(child, 1, "tree") {
			ids = append(ids, child)
		}
	}
	for _, child := range ids {
		page, err := c.page(child)
		if err != nil {
			c.problem("%w", err)
			continue
		}
		if c.depth == branches && le.Uint16(page[8:]) == leafPage && !c.holdsBuckets(page) {
			return
		}
		c.bucket(child, page, level+1)
	}
}

// holdsBuckets: only the root bucket does in a journal, and it fits one page
// there; but then, other programs may have added theirs.
func (c *treeCheck) holdsBuckets(page []byte) (found bool) {
	scanElements(page, func(flags uint32, _, _ []byte) { found = found || flags&bucketElement != 0 })
	return found
}

// freelist checks that free pages are in order, in range, and not in use.
func (c *treeCheck) freelist() {
	const notStored = ^uint64(0)
	if c.meta.freelist == notStored {
		return
	}
	if !c.use(c.meta.freelist, 1, "freelist") {
		return
	}
	page, err := c.page(c.meta.freelist)
	if err != nil {
		c.problem("freelist: %w", err)
		return
	}
	le := binary.LittleEndian
	if le.Uint16(page[8:]) != freelistPage {
		c.problem("freelist: page %d is not one", c.meta.freelist)
		return
	}
	if extra := uint64(len(page))/uint64(c.meta.pageSize) - 1; extra > 0 && !c.use(c.meta.freelist+1, extra, "freelist") {
		return
	}
	ids := page[pageHeaderSize:]
	count := uint64(le.Uint16(page[10:]))
	if count == 0xFFFF {
		count, ids = le.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		c.problem("freelist: %d pages do not fit", count)
		return
	}
	last := uint64(1)
	for i := range count {
		id := le.Uint64(ids[8*i:])
		if id <= last {
			c.problem("freelist: page %d after page %d", id, last)
			return
		}
		last = id
		if !c.use(id, 1, "freelist") {
			return
		}
	}
}
