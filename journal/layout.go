// SPDX-License-Identifier: Apache-2.0

package journal

import "encoding/binary"

// FileName is the journal's name inside a data directory.
const FileName = "journal.db"

// Format is the file format that this program writes. It reads all up to it.
const Format = 1

// maxFormat is what a format number can be; the number has no checksum.
const maxFormat = 1 << 16

// magic marks a bbolt file as a journal.
const magic = "statusstore-journal"

// The bucket tree. docs/format.md describes it for other programs.
//
//	meta     magic, format, node, created       written once
//	         head                               written by every commit
//	         opened                             written at open and close
//	events   sequence (8 bytes, big-endian)  → sealed envelope
//	pods     UID                             → sealed index record
//	acks     UID                             → sealed ack
//	objects  UID                             → sealed pod object
//	openings sequence                        → sealed epoch of an opened event
var (
	bucketMeta    = []byte("meta")
	bucketEvents  = []byte("events")
	bucketPods    = []byte("pods")
	bucketAcks    = []byte("acks")
	bucketObjects = []byte("objects")
	// bucketOpenings is not there in files of earlier releases.
	bucketOpenings = []byte("openings")

	keyMagic  = []byte("magic")
	keyFormat = []byte("format")
	keyAbout  = []byte("about")
	keyHead   = []byte("head")
	keyOpened = []byte("opened")
)

var buckets = [][]byte{bucketMeta, bucketEvents, bucketPods, bucketAcks, bucketObjects}

func sequenceKey(s Sequence) []byte { return binary.BigEndian.AppendUint64(nil, uint64(s)) }

// parseSequenceKey refuses keys of another length: they are not ours.
func parseSequenceKey(k []byte) (Sequence, bool) {
	if len(k) != 8 {
		return 0, false
	}
	return Sequence(binary.BigEndian.Uint64(k)), true
}
