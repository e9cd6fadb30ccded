// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"

	"github.com/statusstore/statusstore/journal"
)

// Readiness is the status of a pod's Ready condition.
type Readiness uint8

// Unstated: the record has no status, or that has no Ready condition.
const (
	Unstated Readiness = iota
	NotReady
	Ready
)

// readyPrefixes are how much of a status is decompressed at first: its phase and
// conditions come before all else.
var readyPrefixes = [...]int{208, maxPrefix}

const maxPrefix = 640

// Ready reads no more of the status than it must.
func (r *Record) Ready() Readiness {
	if len(r.status) == 0 || string(r.ContentType) != string(journal.ContentTypeProtobuf) {
		return Unstated
	}
	data := r.status
	if r.compression == 1 {
		var space [maxPrefix]byte
		for _, n := range readyPrefixes {
			prefix, ok := s2Prefix(space[:0:n], r.status)
			if !ok {
				break
			}
			if ready, found := readyIn(prefix); found {
				return ready
			}
		}
		var err error
		if data, err = r.open(); err != nil {
			return Unstated
		}
	}
	ready, _ := readyIn(data)
	return ready
}

// readyIn looks through the fields of a PodStatus: 1 is the phase, 2 a condition,
// of which 1 is the type and 2 the status. found is false if the end came first.
func readyIn(b []byte) (ready Readiness, found bool) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 > 2 { // fields are in order
			return Unstated, n > 0
		}
		if tag&7 != 2 {
			return Unstated, false
		}
		field, rest, ok := lengthPrefixed(b[n:])
		if !ok {
			return Unstated, false
		}
		b = rest
		if tag>>3 != 2 {
			continue
		}
		if status, is := readyCondition(field); is {
			if string(status) == "True" {
				return Ready, true
			}
			return NotReady, true
		}
	}
	return Unstated, false
}

// readyCondition returns the status of a condition that is of type Ready. The type
// comes first, so others are left at once.
func readyCondition(b []byte) (status []byte, is bool) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag&7 != 2 || tag>>3 > 2 {
			break
		}
		field, rest, ok := lengthPrefixed(b[n:])
		if !ok {
			break
		}
		if tag>>3 == 1 {
			if string(field) != "Ready" {
				return nil, false
			}
			is = true
		} else {
			status = field
		}
		b = rest
	}
	return status, is
}

func lengthPrefixed(b []byte) (field, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(length)], b[n+int(length):], true
}

// s2Prefix decompresses as much of an S2 block as fits into dst. ok is false if
// the block is not one.
//
// A block is the decompressed length, then elements. The low two bits of an
// element's first byte say what it is: 0 text that follows, 1 to 3 a copy of what
// came before, with an offset of 11, 16 or 32 bits; 1 with offset 0 repeats the
// offset of the copy before.
func s2Prefix(dst, src []byte) (out []byte, ok bool) {
	_, n := binary.Uvarint(src)
	if n <= 0 {
		return dst, false
	}
	src = src[n:]
	offset := 0
	for len(src) > 0 && len(dst) < cap(dst) {
		length := int(src[0] >> 2)
		more := 0 // bytes behind the first
		switch src[0] & 3 {
		case 0:
			if length >= 60 {
				more = length - 59
			}
			if len(src) <= more {
				return dst, false
			}
			if more > 0 {
				length = int(little(src[1 : 1+more]))
			}
			length++
			src = src[1+more:]
			if length > len(src) || length <= 0 {
				return dst, false
			}
			dst = append(dst, src[:min(length, cap(dst)-len(dst))]...)
			src = src[length:]
			continue
		case 1:
			if len(src) < 2 {
				return dst, false
			}
			far := int(src[0]&0xe0)<<3 | int(src[1])
			length &= 7
			src = src[2:]
			if far != 0 {
				offset = far
			} else if length >= 5 {
				more = length - 4
				if len(src) < more {
					return dst, false
				}
				length = int(little(src[:more])) + [...]int{4, 1 << 8, 1 << 16}[more-1]
				src = src[more:]
			}
			length += 4
		default:
			more = 2 << (src[0]&3 - 2)
			if len(src) <= more {
				return dst, false
			}
			offset = int(little(src[1 : 1+more]))
			length++
			src = src[1+more:]
		}
		if offset <= 0 || offset > len(dst) {
			return dst, false
		}
		// A copy may reach into what it writes: then it is a pattern that repeats.
		for length = min(length, cap(dst)-len(dst)); length > 0; {
			from := len(dst) - offset
			n := min(length, offset)
			dst = append(dst, dst[from:from+n]...)
			length -= n
		}
	}
	return dst, true
}

func little(b []byte) (x uint64) {
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return x
}
