// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"

	bolt "go.etcd.io/bbolt"
)

// A checksum proves that a record is what was written, not that it is the newest
// of its key, nor that all are there: a disk that loses the write of one page
// leaves an older page that is whole. Events are contiguous, so such a page shows;
// for the other buckets the head keeps a sum over the checksums of all values,
// and is itself written with every commit.
type sums struct {
	pods, acks, objects uint64
	// known is false for a file of an earlier release, until its next commit.
	known bool
}

// sealSum is one value's share: how many there are is in the upper half.
func sealSum(value []byte) uint64 {
	const one = 1 << 32
	if len(value) < sealBytes {
		return one
	}
	return one | uint64(binary.BigEndian.Uint32(value[len(value)-4:]))
}

func sumOf(b *bolt.Bucket) (sum uint64, err error) {
	err = b.ForEach(func(_, value []byte) error {
		sum += sealSum(value)
		return nil
	})
	return sum, err
}

func sumAll(tx *bolt.Tx) (s sums, err error) {
	var err1, err2, err3 error
	s.pods, err1 = sumOf(tx.Bucket(bucketPods))
	s.acks, err2 = sumOf(tx.Bucket(bucketAcks))
	s.objects, err3 = sumOf(tx.Bucket(bucketObjects))
	s.known = true
	return s, errors.Join(err1, err2, err3)
}

// summedBucket writes to a bucket and keeps its sum.
type summedBucket struct {
	*bolt.Bucket
	sum *uint64
}

func (b summedBucket) put(key, value []byte) error {
	if old := b.Get(key); old != nil {
		*b.sum -= sealSum(old)
	}
	*b.sum += sealSum(value)
	return b.Put(key, value)
}

func (b summedBucket) delete(key []byte) error {
	if old := b.Get(key); old != nil {
		*b.sum -= sealSum(old)
	}
	return b.Delete(key)
}

var errSum = errors.New("it is not as the newest commit left it: records are missing, or older ones have come back")

// checkSum compares what was read of a bucket with what the head says of it.
func (v *view) checkSum(bucket []byte, known bool, want, got uint64) error {
	if !known || want == got {
		return nil
	}
	return v.corrupt(bucket, 0, errSum)
}
