// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

var (
	be         = binary.BigEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

const (
	sealBytes  = 5 // the checksum and its msgpack code
	codeUint32 = 0xce
)

// unseal compares the checksum before anything is parsed, and returns the array
// without it.
func unseal(key, value []byte) (values, error) {
	body := len(value) - sealBytes
	if body < 1 || value[body] != codeUint32 {
		return values{}, unsound("key %q: value is not sealed", key)
	}
	if crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value[:body]) != be.Uint32(value[body+1:]) {
		return values{}, unsound("key %q: checksum does not match", key)
	}
	n, p := readArray(value[:body], 0)
	if p == outside || n < 1 {
		return values{}, unsound("key %q: value is no array", key)
	}
	return values{b: value[:body], p: p, left: n - 1}, nil
}

// values reads the elements of a sealed array, in order. What can't be read makes
// it bad, and gives zero values from there on.
type values struct {
	b    []byte
	p    int
	left int // elements
}

func (v *values) bad() bool { return v.p == outside }

// element counts one; it is bad to ask for more than there are.
func (v *values) element() {
	if v.left--; v.left < 0 {
		v.p = outside
	}
}

func (v *values) int() (x int64) {
	v.element()
	x, v.p = readInt(v.b, v.p)
	return x
}

func (v *values) uint() uint64    { return uint64(v.int()) }
func (v *values) time() time.Time { return timeOf(v.int()) }

func (v *values) bytes() (x []byte) {
	v.element()
	x, v.p = readBytes(v.b, v.p)
	return x
}

// attributes reads the array of keys and values; nil if it is empty.
func (v *values) attributes() map[string]string {
	v.element()
	n := 0
	n, v.p = readArray(v.b, v.p)
	if v.bad() || n == 0 || n > len(v.b) {
		return nil
	}
	v.left += n
	m := make(map[string]string, n/2)
	for range n / 2 {
		k := string(v.bytes())
		m[k] = string(v.bytes())
	}
	return m
}
