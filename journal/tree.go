// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The engine follows page numbers without doubt: a cycle ends in a stack
// overflow that nothing can recover from, and a live page on the freelist is
// overwritten by the next commit. So the structure is walked with plain reads
// before anything is mapped: the freelist, branch pages, and the leaf pages of
// all buckets but events at each open, which is O(pods) and about a hundredth of
// the history; all leaf pages where all is read anyway.

const (
	branchPage   = 0x01
	freelistPage = 0x10
	// maxTreeDepth is far beyond any real tree: 4 levels hold a billion keys.
	maxTreeDepth = 16
)

// depth says how far a structure check goes.
type depth uint8

const (
	branches depth = iota // what an open can afford: of events, no leaf pages
	leaves                // each page
)

var errCycle = errors.New("page is used twice")

// pageError is damage with its place in the file.
type pageError struct {
	page   uint64
	offset int64
	err    error
}

// unsafeError marks damage that makes a file unsafe to read at all. The engine
// follows what a branch page says without end. And it copies a small bucket to the
// heap and reads it there without bounds, which the garbage collector does not
// survive. Damaged leaf pages of a bucket are safe: no pages hang on them.
type unsafeError struct{ error }

func (e unsafeError) Unwrap() error { return e.error }

func isUnsafe(err error) bool {
	_, marked := errors.AsType[unsafeError](err)
	return marked || errors.Is(err, errCycle)
}

func (e *pageError) Error() string {
	return fmt.Sprintf("page %d at offset %d: %v", e.page, e.offset, e.err)
}

func (e *pageError) Unwrap() error { return e.err }

// treeCheck walks the pages of one state of the file.
type treeCheck struct {
	f        io.ReaderAt
	meta     boltMeta
	depth    depth
	used     []uint64 // bit per page
	problems []error

	leafLevel int    // at depth branches, once the first leaf is met
	lowest    []byte // memory for branch pages right above leaf pages, one at a time
}

// checkTree returns what is wrong with the structure. With problems that are
// isUnsafe the engine must not read the file.
func checkTree(f io.ReaderAt, m boltMeta, d depth) []error {
	c := &treeCheck{f: f, meta: m, depth: d, used: make([]uint64, m.highWater/64+1)}
	if c.use(m.root, 1, "root bucket") {
		if root, err := c.page(m.root); err != nil {
			c.problem(m.root, "root bucket: %w", unsafeError{err})
		} else {
			// Its leaf pages name the buckets, so they are read at any depth.
			c.subtree(m.root, root, keyRange{}, 0, leaves)
		}
		c.freelist()
	}
	return c.problems
}

func (c *treeCheck) problem(page uint64, format string, args ...any) {
	if len(c.problems) < 100 {
		offset := int64(min(page, 1<<40)) * int64(c.meta.pageSize)
		c.problems = append(c.problems, &pageError{page, offset, fmt.Errorf(format, args...)})
	}
}

// use claims n pages; each belongs to one parent only.
func (c *treeCheck) use(id, n uint64, what string) bool {
	if id < 2 || id >= c.meta.highWater || n > c.meta.highWater-id {
		c.problem(id, "%s: it is outside of the file", what)
		return false
	}
	for p := id; p < id+n; p++ {
		if c.used[p/64]&(1<<(p%64)) != 0 {
			c.problem(p, "%s: %w", what, errCycle)
			return false
		}
		c.used[p/64] |= 1 << (p % 64)
	}
	return true
}

// page reads a page whole, the pages that it flows over into included.
func (c *treeCheck) page(id uint64) ([]byte, error) {
	return c.pageInto(make([]byte, c.meta.pageSize), id)
}

func (c *treeCheck) pageInto(page []byte, id uint64) ([]byte, error) {
	size := int64(len(page))
	if _, err := c.f.ReadAt(page, int64(id)*size); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	overflow := uint64(le.Uint32(page[12:]))
	switch flags := le.Uint16(page[8:]); {
	case le.Uint64(page) != id:
		return nil, fmt.Errorf("it says it is page %d", le.Uint64(page))
	case flags != branchPage && flags != leafPage && flags != freelistPage:
		return nil, fmt.Errorf("it has no valid type (%#x)", flags)
	case overflow >= c.meta.highWater-id && flags == branchPage:
		return nil, unsafeError{fmt.Errorf("it flows over into %d pages", overflow)}
	case overflow >= c.meta.highWater-id:
		return nil, fmt.Errorf("it flows over into %d pages", overflow)
	case overflow > 0:
		page = append(slices.Clip(page), make([]byte, int64(overflow)*size)...)
		if _, err := c.f.ReadAt(page, int64(id)*size); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// subtree walks the pages below one, and the buckets inside. The page itself was
// claimed by the caller; its keys must lie in keys.
func (c *treeCheck) subtree(id uint64, page []byte, keys keyRange, level int, d depth) {
	if level > maxTreeDepth {
		c.problem(id, "%w", unsafeError{fmt.Errorf("tree is deeper than %d", maxTreeDepth)})
		return
	}
	le := binary.LittleEndian
	if extra := uint64(len(page))/uint64(c.meta.pageSize) - 1; extra > 0 && !c.use(id+1, extra, "overflow") {
		return
	}
	kind := le.Uint16(page[8:])
	if kind == freelistPage {
		c.problem(id, "%w", unsafeError{errors.New("a freelist inside a tree")})
		kind = branchPage // which is what the engine takes it for, and might follow for ever
	}
	// What does not lie where it must is still walked as far as it can be: it may
	// lead to a page that is used twice.
	if err := checkLayout(page, keys, int(c.meta.pageSize)); err != nil {
		if kind == branchPage || c.holdsBuckets(page) {
			err = unsafeError{err}
		}
		c.problem(id, "%w", err)
	}
	if kind == branchPage {
		c.children(id, page, keys, level, d)
		return
	}
	scanElements(page, func(flags uint32, name, value []byte) {
		if flags&bucketElement != 0 {
			c.nested(id, name, value, level)
		}
	})
}

// nested walks a bucket inside a leaf page. A small one is inline: it has no
// pages of its own, and 0 for their root.
func (c *treeCheck) nested(id uint64, name, value []byte, level int) {
	if len(value) < inlineHeader {
		c.problem(id, "bucket %q: %w", name, unsafeError{errShape})
		return
	}
	root := binary.LittleEndian.Uint64(value)
	if root == 0 {
		if err := checkInline(value[inlineHeader:]); err != nil {
			c.problem(id, "bucket %q: %w", name, unsafeError{err})
		}
		return
	}
	if len(value) != inlineHeader {
		c.problem(id, "bucket %q: %w", name, unsafeError{errShape})
	}
	if !c.use(root, 1, fmt.Sprintf("bucket %q", name)) {
		return
	}
	page, err := c.page(root)
	if err != nil {
		c.problem(root, "bucket %q: %w", name, err)
		return
	}
	d := leaves
	if string(name) == string(bucketEvents) {
		level, lowest := c.leafLevel, c.lowest // other programs may have one of that name in theirs
		defer func() { c.leafLevel, c.lowest = level, lowest }()
		c.leafLevel, c.lowest = 0, make([]byte, c.meta.pageSize)
		d = c.depth
	}
	c.subtree(root, page, keyRange{}, level+1, d)
}

// children claims all children of a branch page, then walks those that must be
// read. All leaf pages of a sound tree are on one level, so at depth branches the
// first one tells which; besides it the last one of all is read, since the next
// append goes there.
func (c *treeCheck) children(id uint64, page []byte, keys keyRange, level int, d depth) {
	le := binary.LittleEndian
	count := int(le.Uint16(page[10:]))
	if count == 0 {
		c.problem(id, "branch without children")
	}
	n := min(count, (len(page)-pageHeaderSize)/leafElement)
	childOf := func(i int) uint64 { return le.Uint64(page[pageHeaderSize+i*leafElement+8:]) }
	var twice map[int]bool // not ours to walk
	for i := range n {
		if !c.use(childOf(i), 1, "tree") {
			if twice == nil {
				twice = map[int]bool{}
			}
			twice[i] = true
		}
	}
	first := 0
	if d == branches && level+1 == c.leafLevel {
		first = n
		if keys.below == nil {
			first = n - 1
		}
	}
	for i := first; i < n; i++ {
		if twice[i] {
			continue
		}
		id := childOf(i)
		memory := c.lowest
		if d != branches || level+2 != c.leafLevel {
			memory = make([]byte, c.meta.pageSize)
		}
		child, err := c.pageInto(memory, id)
		if err != nil {
			c.problem(id, "%w", err)
			continue
		}
		if d == branches && le.Uint16(child[8:]) == leafPage && i < n-1 && !c.holdsBuckets(child) {
			c.leafLevel = level + 1
			if keys.below != nil {
				break
			}
			i = n - 2 // on to the last
			continue
		}
		below := keys.below
		if i < n-1 {
			below = branchKey(page, i+1)
		}
		c.subtree(id, child, keyRange{branchKey(page, i), below}, level+1, d)
	}
}

// holdsBuckets: events holds none in a journal; but then, other programs may have
// added theirs.
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
		c.problem(c.meta.freelist, "freelist: %w", err)
		return
	}
	le := binary.LittleEndian
	if le.Uint16(page[8:]) != freelistPage {
		c.problem(c.meta.freelist, "it should be the freelist")
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
		c.problem(c.meta.freelist, "freelist: %d pages do not fit", count)
		return
	}
	last := uint64(1)
	for i := range count {
		id := le.Uint64(ids[8*i:])
		if id <= last {
			c.problem(c.meta.freelist, "freelist: page %d after page %d", id, last)
			return
		}
		last = id
		if !c.use(id, 1, "freelist") {
			return
		}
	}
}
