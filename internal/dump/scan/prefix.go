// SPDX-License-Identifier: Apache-2.0

package scan

import "encoding/binary"

const (
	// maxPrefix is how much of a status may be looked through this way. Its phase
	// and conditions come before all else.
	maxPrefix = 1024
	chunk     = 16 // bytes that are copied at once
)

// prefix is the beginning of what an S2 block holds, decompressed as far as it is
// asked for.
//
// A block is the decompressed length, then elements. The low two bits of an
// element's first byte say what it is: 0 text that follows, 1 to 3 a copy of what
// came before, with an offset of 11, 16 or 32 bits; 1 with offset 0 repeats the
// offset of the copy before.
type prefix struct {
	block  []byte // what is left of it
	n      int    // bytes of text
	offset int    // of the last copy
	// Behind the text there is room for a chunk's end.
	text [maxPrefix + chunk]byte
}

// begin takes another block. ok is false if it is not one.
func (p *prefix) begin(block []byte) (ok bool) {
	_, n := binary.Uvarint(block)
	if n <= 0 {
		return false
	}
	p.block, p.n, p.offset = block[n:], 0, 0
	return true
}

// has decompresses until there are n bytes of text. It is false if there are not
// so many, or more than a prefix is for, or the block is not one.
func (p *prefix) has(n int) bool {
	for p.n < n {
		if n > maxPrefix || !p.step() {
			return false
		}
	}
	return true
}

// step decompresses one element.
func (p *prefix) step() bool {
	src := p.block
	if len(src) == 0 {
		return false
	}
	head := src[0]
	length := int(head >> 2)
	switch head & 3 {
	case 0:
		behind := 1
		if length >= 60 {
			behind = length - 58
			if len(src) < behind {
				return false
			}
			length = int(little(src[1:behind]))
		}
		length++
		if length <= 0 || length > len(src)-behind {
			return false
		}
		p.literal(src[behind:], length)
		p.block = src[behind+length:]
		return true
	case 1:
		if len(src) < 2 {
			return false
		}
		far := int(head&0xe0)<<3 | int(src[1])
		length &= 7
		src = src[2:]
		if far != 0 {
			p.offset = far
		} else if length >= 5 {
			more := length - 4
			if len(src) < more {
				return false
			}
			length = int(little(src[:more])) + [...]int{4, 1 << 8, 1 << 16}[more-1]
			src = src[more:]
		}
		length += 4
	case 2:
		if len(src) < 3 {
			return false
		}
		p.offset = int(src[1]) | int(src[2])<<8
		length++
		src = src[3:]
	default:
		if len(src) < 5 {
			return false
		}
		p.offset = int(little(src[1:5]))
		length++
		src = src[5:]
	}
	p.block = src
	return p.repeat(length)
}

// literal appends the beginning of what the block has, as much as there is room
// for.
func (p *prefix) literal(src []byte, length int) {
	if at := p.n; length <= chunk && len(src) >= chunk && at <= maxPrefix-chunk {
		*(*[chunk]byte)(p.text[at:]) = *(*[chunk]byte)(src)
		p.n = at + length
		return
	}
	p.n += copy(p.text[p.n:maxPrefix], src[:length])
}

// repeat appends what is there already, as much as there is room for.
func (p *prefix) repeat(length int) bool {
	from, at := p.n-p.offset, p.n
	if p.offset <= 0 || from < 0 {
		return false
	}
	end := min(at+length, maxPrefix)
	p.n = end
	if p.offset >= chunk {
		for ; at < end; at, from = at+chunk, from+chunk {
			*(*[chunk]byte)(p.text[at:]) = *(*[chunk]byte)(p.text[from:])
		}
		return true
	}
	for ; at < end; at, from = at+1, from+1 { // it reaches into what it writes: a pattern
		p.text[at] = p.text[from]
	}
	return true
}

func little(b []byte) (x uint64) {
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return x
}
