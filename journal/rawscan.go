// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Reading a file page by page, without its tree: what salvage does when the
// tree can't be trusted. A leaf page of bbolt is a header, an array of elements
// and the keys and values they point to:
//
//	page     id u64, flags u16, count u16, overflow u32
//	element  flags u32, pos u32 (from the element), key size u32, value size u32
//
// A small bucket is a value: 16 bytes of its own, then such a page.
const (
	leafPage       = 0x02
	leafElement    = 16
	bucketElement  = 0x01
	inlineHeader   = 16
	defaultPage    = 4096
	maxPage        = 64 << 10 // of the systems that bbolt runs on
	maxScanOverrun = 64 << 20 // no value is near that large
)

// scanPages visits all keys and values of all leaf pages, those of free pages
// included. The slices are valid only during the call.
func scanPages(ctx context.Context, path string, m *meter, visit func(key, value []byte)) error {
	f, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("salvage: %w", err)
	}
	size := int64(0)
	if metas, _ := readMetas(f); len(metas) > 0 {
		size = int64(metas[0].pageSize)
	} else {
		size = guessPageSize(f, info.Size())
	}
	header := make([]byte, pageHeaderSize)
	for at := int64(0); at < info.Size(); at += size {
		if ctx.Err() != nil {
			return fmt.Errorf("salvage: %w", context.Cause(ctx))
		}
		m.at(at)
		if _, err := f.ReadAt(header, at); err != nil {
			return nil // the last page is cut
		}
		if binary.LittleEndian.Uint16(header[8:]) != leafPage {
			continue
		}
		length := (int64(binary.LittleEndian.Uint32(header[12:])) + 1) * size
		page := make([]byte, min(length, info.Size()-at, maxScanOverrun))
		if _, err := f.ReadAt(page, at); err != nil && !errors.Is(err, io.EOF) {
			continue // an unreadable sector costs its page, not the rest
		}
		scanLeaf(page, visit, 0)
	}
	return nil
}

// guessPageSize finds the page size of a file without a meta page: each page
// begins with its number, which fits for one size only.
func guessPageSize(f io.ReaderAt, length int64) int64 {
	best, most := int64(defaultPage), 0
	header := make([]byte, pageHeaderSize)
	for size := int64(512); size <= maxPage; size <<= 1 {
		n := 0
		for at := 2 * size; at+pageHeaderSize <= length && n < 1000; at += size {
			if _, err := f.ReadAt(header, at); err != nil {
				continue // an unreadable sector
			}
			flags := binary.LittleEndian.Uint16(header[8:])
			if binary.LittleEndian.Uint64(header) == uint64(at/size) && (flags == branchPage || flags == leafPage || flags == freelistPage) {
				n++
			}
		}
		if n > most {
			best, most = size, n
		}
	}
	return best
}

func scanLeaf(page []byte, visit func(key, value []byte), depth int) {
	if depth > 2 {
		return
	}
	scanElements(page, func(flags uint32, key, value []byte) {
		if flags&bucketElement == 0 {
			visit(key, value)
		} else if len(value) > inlineHeader {
			scanLeaf(value[inlineHeader:], visit, depth+1)
		}
	})
}

// scanElements visits those elements of a leaf page that lie inside of it.
func scanElements(page []byte, visit func(flags uint32, key, value []byte)) {
	if len(page) < pageHeaderSize {
		return
	}
	le := binary.LittleEndian
	for i := range int(le.Uint16(page[10:])) {
		at := pageHeaderSize + i*leafElement
		if at+leafElement > len(page) {
			return
		}
		e := page[at:]
		keyAt := int64(at) + int64(le.Uint32(e[4:]))
		valueAt := keyAt + int64(le.Uint32(e[8:]))
		end := valueAt + int64(le.Uint32(e[12:]))
		if end <= int64(len(page)) {
			visit(le.Uint32(e), page[keyAt:valueAt], page[valueAt:end])
		}
	}
}
