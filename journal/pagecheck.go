// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The engine's pages have no checksum. The values have (see seal.go), but one bit
// in the header of a leaf page hides a record without touching it. What stands
// against that is that bbolt lays a page out in one way only: the elements, then
// the keys and values without gaps, in order, on no more pages than they need. So
// count, positions and sizes prove one another.

// keyRange is where the keys below a branch element must lie; nil is no bound.
type keyRange struct{ from, below []byte }

func (r keyRange) holds(key []byte) bool {
	return (r.from == nil || bytes.Compare(key, r.from) >= 0) && (r.below == nil || bytes.Compare(key, r.below) < 0)
}

// checkLayout checks a branch or leaf page with the pages that it flows over into.
func checkLayout(page []byte, keys keyRange, pageSize int) error {
	leaf := binary.LittleEndian.Uint16(page[8:]) == leafPage
	end, err := checkElements(page, leaf, keys)
	if err != nil {
		return err
	}
	// A bbolt before 1.4 takes one page more when the last is exactly full.
	if need := (end + pageSize - 1) / pageSize; need != len(page)/pageSize && (end%pageSize != 0 || need+1 != len(page)/pageSize) {
		return fmt.Errorf("it flows over into %d pages and needs %d", len(page)/pageSize-1, need-1)
	}
	return nil
}

// checkInline checks the page inside the value of an inline bucket.
func checkInline(page []byte) error {
	if len(page) < pageHeaderSize {
		return fmt.Errorf("inline page of %d bytes", len(page))
	}
	if flags := binary.LittleEndian.Uint16(page[8:]); flags != leafPage {
		return fmt.Errorf("inline page has no valid type (%#x)", flags)
	}
	end, err := checkElements(page, true, keyRange{})
	if err == nil && end != len(page) {
		err = fmt.Errorf("inline page ends at byte %d of %d", end, len(page))
	}
	return err
}

// checkElements returns where the last value ends.
func checkElements(page []byte, leaf bool, keys keyRange) (end int, err error) {
	le := binary.LittleEndian
	count := int(le.Uint16(page[10:]))
	at := int64(pageHeaderSize) + int64(count)*leafElement
	if at > int64(len(page)) {
		return 0, fmt.Errorf("%d elements do not fit", count)
	}
	var last []byte
	for i := range count {
		e := page[pageHeaderSize+i*leafElement:]
		pos, keySize, valueSize := le.Uint32(e), int64(le.Uint32(e[4:])), int64(0)
		if leaf {
			if flags := le.Uint32(e); flags > bucketElement {
				return 0, fmt.Errorf("element %d has no valid type (%#x)", i, flags)
			}
			pos, keySize, valueSize = le.Uint32(e[4:]), int64(le.Uint32(e[8:])), int64(le.Uint32(e[12:]))
		}
		if want := at - int64(pageHeaderSize+i*leafElement); int64(pos) != want {
			return 0, fmt.Errorf("element %d lies at %d instead of %d", i, pos, want)
		}
		if keySize+valueSize > int64(len(page))-at {
			return 0, fmt.Errorf("element %d of %d bytes does not fit", i, keySize+valueSize)
		}
		key := page[at : at+keySize]
		if len(key) == 0 || last != nil && bytes.Compare(last, key) >= 0 {
			return 0, fmt.Errorf("element %d is out of order", i)
		}
		if !keys.holds(key) {
			return 0, errors.New("its keys do not belong there")
		}
		last = key
		at += keySize + valueSize
	}
	return int(at), nil
}

// branchKey returns the key of a branch element, nil if it lies outside of the page.
func branchKey(page []byte, i int) []byte {
	at := pageHeaderSize + i*leafElement
	from := int64(at) + int64(binary.LittleEndian.Uint32(page[at:]))
	end := from + int64(binary.LittleEndian.Uint32(page[at+4:]))
	if end > int64(len(page)) {
		return nil
	}
	return page[from:end]
}
