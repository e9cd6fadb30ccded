// SPDX-License-Identifier: Apache-2.0

package scan

// outside is a position behind any end: what was read there is no value, and
// neither is what follows.
const outside = 1 << 40

// readSmall is readInt for what is mostly less than 128.
func readSmall(b []byte, p int) (int64, int) {
	if uint(p) < uint(len(b)) && b[p] <= 0x7f {
		return int64(b[p]), p + 1
	}
	return readInt(b, p)
}

// readInt reads an integer or a boolean at p and returns the position behind it.
func readInt(b []byte, p int) (int64, int) {
	if uint(p) >= uint(len(b)) {
		return 0, outside
	}
	c := b[p]
	p++
	if c <= 0x7f {
		return int64(c), p
	}
	if c >= 0xe0 {
		return int64(int8(c)), p
	}
	rest := b[p:]
	switch c {
	case 0xcf, 0xd3:
		if len(rest) >= 8 {
			return int64(be.Uint64(rest)), p + 8
		}
	case 0xce:
		if len(rest) >= 4 {
			return int64(be.Uint32(rest)), p + 4
		}
	case 0xcd:
		if len(rest) >= 2 {
			return int64(be.Uint16(rest)), p + 2
		}
	case 0xcc:
		if len(rest) >= 1 {
			return int64(rest[0]), p + 1
		}
	case 0xc2, 0xc3: // booleans
		return int64(c - 0xc2), p
	case 0xd2:
		if len(rest) >= 4 {
			return int64(int32(be.Uint32(rest))), p + 4
		}
	case 0xd1:
		if len(rest) >= 2 {
			return int64(int16(be.Uint16(rest))), p + 2
		}
	case 0xd0:
		if len(rest) >= 1 {
			return int64(int8(rest[0])), p + 1
		}
	}
	return 0, outside
}

// readBytes reads a string, a byte string or nil.
func readBytes(b []byte, p int) ([]byte, int) {
	if uint(p) >= uint(len(b)) {
		return nil, outside
	}
	c := b[p]
	p++
	n := 0
	rest := b[p:]
	switch {
	case c&0xe0 == 0xa0:
		n = int(c & 0x1f)
	case c == 0xc0:
		return nil, p
	case (c == 0xd9 || c == 0xc4) && len(rest) >= 1:
		n = int(rest[0])
		p++
	case (c == 0xda || c == 0xc5) && len(rest) >= 2:
		n = int(be.Uint16(rest))
		p += 2
	case (c == 0xdb || c == 0xc6) && len(rest) >= 4:
		n = int(be.Uint32(rest))
		p += 4
	default:
		return nil, outside
	}
	if n > len(b)-p {
		return nil, outside
	}
	return b[p : p+n : p+n], p + n
}

// readArray reads an array's head.
func readArray(b []byte, p int) (int, int) {
	if uint(p) >= uint(len(b)) {
		return 0, outside
	}
	c := b[p]
	p++
	rest := b[p:]
	switch {
	case c&0xf0 == 0x90:
		return int(c & 0x0f), p
	case c == 0xdc && len(rest) >= 2:
		return int(be.Uint16(rest)), p + 2
	case c == 0xdd && len(rest) >= 4:
		return int(be.Uint32(rest)), p + 4
	default:
		return 0, outside
	}
}
