// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"
)

// The engine's file, format version 2. A page is a header, then elements that
// point to keys and values behind them.
//
//	header   id u64, flags u16, count u16, overflow u32
//	leaf     flags u32, pos u32 (from the element), key size u32, value size u32
//	branch   pos u32 (from the element), key size u32, child u64
const (
	pageHeader  = 16
	elementSize = 16

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10
	leafBucket   = 0x01

	metaBytes   = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	maxDepth    = 16
	// maxOverflow bounds one page: no value is near that large.
	maxOverflow = 64 << 20
)

var le = binary.LittleEndian

// meta is the part of a meta page that is needed.
type meta struct {
	pageSize  uint32
	root      uint64
	freelist  uint64
	highWater uint64
	txid      uint64
}

// readMeta wants both meta pages sound and the file as long as they say.
func readMeta(f io.ReaderAt, size int64) (meta, error) {
	first, err := metaAt(f, 0)
	if err != nil {
		return meta{}, err
	}
	second, err := metaAt(f, int64(first.pageSize))
	if err != nil {
		return meta{}, err
	}
	newest := first
	if second.txid > first.txid {
		newest = second
	}
	if first.pageSize != second.pageSize || uint64(size)/uint64(newest.pageSize) < newest.highWater {
		return meta{}, unsound("meta pages don't fit the file")
	}
	return newest, nil
}

func metaAt(f io.ReaderAt, at int64) (meta, error) {
	page := make([]byte, pageHeader+metaBytes)
	if _, err := f.ReadAt(page, at); err != nil {
		return meta{}, unsound("meta page: %w", err)
	}
	b := page[pageHeader:]
	sum := fnv.New64a()
	sum.Write(b[:metaBytes-8])
	m := meta{pageSize: le.Uint32(b[8:]), root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]), highWater: le.Uint64(b[40:]), txid: le.Uint64(b[48:])}
	if le.Uint32(b) != metaMagic || le.Uint32(b[4:]) != metaVersion || sum.Sum64() != le.Uint64(b[metaBytes-8:]) ||
		m.pageSize < 512 || m.pageSize > 1<<24 || m.pageSize&(m.pageSize-1) != 0 || m.highWater > 1<<40 {
		return meta{}, unsound("meta page is invalid")
	}
	return m, nil
}

// checkPage returns what a page's header says, if it can be right. The page may
// be longer than what is there: overflow tells.
func (s *File) checkPage(id uint64, page []byte) (flags uint16, count int, overflow uint64, err error) {
	flags, count, overflow = le.Uint16(page[8:]), int(le.Uint16(page[10:])), uint64(le.Uint32(page[12:]))
	if le.Uint64(page) != id || overflow >= s.meta.highWater-id || overflow*uint64(s.meta.pageSize) > maxOverflow {
		return 0, 0, 0, unsound("page %d has an invalid header", id)
	}
	return flags, count, overflow, nil
}

// page reads a page with all that it flows over into.
func (s *File) page(id uint64) (flags uint16, count int, page []byte, err error) {
	if id < 2 || id >= s.meta.highWater {
		return 0, 0, nil, unsound("page %d is outside of the file", id)
	}
	size := int64(s.meta.pageSize)
	page = make([]byte, size)
	if _, err := s.f.ReadAt(page, int64(id)*size); err != nil {
		return 0, 0, nil, unsound("page %d: %w", id, err)
	}
	flags, count, overflow, err := s.checkPage(id, page)
	if err != nil {
		return 0, 0, nil, err
	}
	if overflow > 0 {
		page = slices.Grow(page, int(overflow)*int(size))[:int(overflow+1)*int(size)]
		if _, err := s.f.ReadAt(page[size:], int64(id+1)*size); err != nil {
			return 0, 0, nil, unsound("page %d: %w", id, err)
		}
	}
	return flags, count, page, nil
}

// leafElement returns an element of a leaf page; ok is false if it lies outside.
func leafElement(page []byte, i int) (flags uint32, key, value []byte, ok bool) {
	flags, n, pair, ok := leafPair(page, i)
	if !ok {
		return 0, nil, nil, false
	}
	return flags, pair[:n], pair[n:], true
}

// leafPair is leafElement with the value behind its key, of n bytes, as they lie
// in the page.
func leafPair(page []byte, i int) (flags uint32, n int, pair []byte, ok bool) {
	at := pageHeader + i*elementSize
	if at+elementSize > len(page) {
		return 0, 0, nil, false
	}
	e := page[at : at+elementSize]
	keyAt := uint64(at) + uint64(le.Uint32(e[4:]))
	key := uint64(le.Uint32(e[8:]))
	end := keyAt + key + uint64(le.Uint32(e[12:]))
	if end > uint64(len(page)) {
		return 0, 0, nil, false
	}
	return le.Uint32(e), int(key), page[keyAt:end], true
}

// branchElement returns a child and the first key below it.
func branchElement(page []byte, i int) (key []byte, child uint64, ok bool) {
	at := pageHeader + i*elementSize
	if at+elementSize > len(page) {
		return nil, 0, false
	}
	e := page[at : at+elementSize]
	keyAt := uint64(at) + uint64(le.Uint32(e))
	end := keyAt + uint64(le.Uint32(e[4:]))
	if end > uint64(len(page)) {
		return nil, 0, false
	}
	return page[keyAt:end], le.Uint64(e[8:]), true
}

// freePages reads the length of the freelist: a 16-bit count, or, if that is
// full, a 64-bit one behind the header.
func (s *File) freePages() (uint64, error) {
	flags, count, page, err := s.page(s.meta.freelist)
	if err != nil {
		return 0, err
	}
	if flags != flagFreelist {
		return 0, unsound("page %d is no freelist", s.meta.freelist)
	}
	n := uint64(count)
	if count == 0xFFFF {
		n = le.Uint64(page[pageHeader:])
	}
	if n > s.meta.highWater {
		return 0, unsound("freelist is too long")
	}
	return n, nil
}

// bucket is where a bucket's tree begins: a page, or, for a small one, the value
// itself.
type bucket struct {
	root   uint64
	inline []byte
}

// ownBuckets are those of a journal; the optional ones came later.
var (
	ownBuckets      = []string{"meta", "events", "pods", "acks", "objects"}
	optionalBuckets = []string{"openings"}
)

// loadBuckets reads the root bucket.
func (s *File) loadBuckets() error {
	s.buckets = map[string]bucket{}
	err := s.walk(s.meta.root, 0, func(flags uint32, k, v []byte) error {
		if flags&leafBucket == 0 || len(v) < 16 {
			return unsound("key %q is no bucket", k)
		}
		b := bucket{root: le.Uint64(v)}
		if b.root == 0 {
			b.inline = slices.Clone(v[16:])
		}
		s.buckets[string(k)] = b
		s.Foreign = s.Foreign || !slices.Contains(ownBuckets, string(k)) && !slices.Contains(optionalBuckets, string(k))
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range ownBuckets {
		if _, ok := s.buckets[name]; !ok {
			return unsound("no bucket %s", name)
		}
	}
	return nil
}

// each visits the keys of a small bucket, in order. Slices are valid during the
// call only.
func (s *File) each(name string, visit func(k, v []byte) error) error {
	plain := func(flags uint32, k, v []byte) error {
		if flags&leafBucket != 0 {
			return unsound("bucket %s: key %q is a bucket", name, k)
		}
		return visit(k, v)
	}
	b := s.buckets[name]
	if b.root != 0 {
		return s.walk(b.root, 0, plain)
	}
	if len(b.inline) < pageHeader {
		return unsound("bucket %s is short", name)
	}
	return eachElement(b.inline, int(le.Uint16(b.inline[10:])), plain)
}

func (s *File) walk(id uint64, depth int, visit func(flags uint32, k, v []byte) error) error {
	flags, count, page, err := s.page(id)
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return unsound("tree is deeper than %d", maxDepth)
	case flags == flagLeaf:
		return eachElement(page, count, visit)
	case flags != flagBranch:
		return unsound("page %d is not of a tree", id)
	}
	for i := range count {
		_, child, ok := branchElement(page, i)
		if !ok {
			return unsound("page %d: element %d is outside", id, i)
		}
		if err := s.walk(child, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func eachElement(page []byte, count int, visit func(flags uint32, k, v []byte) error) error {
	for i := range count {
		flags, k, v, ok := leafElement(page, i)
		if !ok {
			return unsound("element %d is outside of its page", i)
		}
		if err := visit(flags, k, v); err != nil {
			return err
		}
	}
	return nil
}
