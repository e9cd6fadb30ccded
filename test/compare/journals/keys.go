// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is the event as the peers store it: UID, status and a checksum, which the
// engines that have their own could do without, but at this size it costs nothing.
func record(e event) []byte {
	b := make([]byte, 0, len(e.uid)+len(e.status)+8)
	b = binary.AppendUvarint(b, uint64(len(e.uid)))
	b = append(b, e.uid...)
	b = append(b, e.status...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// trimmer says which events a commit deletes, so that retained are left.
type trimmer struct{ first uint64 }

// next returns the range [from, to) to delete when last is the newest event.
func (t *trimmer) next(last uint64) (from, to uint64) {
	if t.first == 0 {
		t.first = 1
	}
	if last < t.first+retained+trimAt {
		return t.first, t.first
	}
	from, t.first = t.first, last-retained+1
	return from, t.first
}
