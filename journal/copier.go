// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// copier writes all buckets of a journal into an empty file, those of other
// programs included. Unlike the engine's own compaction it stops when it is told to
// and says how far it is.
type copier struct {
	dst   *bolt.DB
	tx    *bolt.Tx
	bytes int64 // in tx
	free  int64 // bytes of the source
	used  int64
	meter *meter
}

func (c *copier) all(ctx context.Context, src *bolt.Tx) (err error) {
	c.used = src.Size() - c.free
	c.meter = newMeter(ctx, 2*c.used)
	if c.tx, err = c.dst.Begin(true); err != nil {
		return err
	}
	// After the last commit this finds nothing to do.
	defer func() {
		if e := c.tx.Rollback(); err == nil && !errors.Is(e, bolterrors.ErrTxClosed) {
			err = e
		}
	}()
	err = src.ForEach(func(name []byte, b *bolt.Bucket) error { return c.bucket(ctx, [][]byte{name}, b) })
	if err != nil {
		return err
	}
	if err := c.tx.Commit(); err != nil {
		return err
	}
	c.meter.at(c.used)
	return nil
}

// bucket copies one bucket and those inside.
func (c *copier) bucket(ctx context.Context, path [][]byte, src *bolt.Bucket) error {
	dst, err := c.open(path)
	if err != nil {
		return err
	}
	if err := dst.SetSequence(src.Sequence()); err != nil {
		return err
	}
	return src.ForEach(func(k, v []byte) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		full := c.bytes > compactTxBytes
		if full {
			if err := c.next(); err != nil {
				return err
			}
		}
		if v == nil && (len(path) > maxTreeDepth || isOurs(path[0])) {
			return fmt.Errorf("%w: bucket %q inside of bucket %q", ErrCorrupt, k, path[0])
		}
		if v == nil {
			err := c.bucket(ctx, append(slices.Clip(path), k), src.Bucket(k))
			if err != nil {
				return err
			}
			full = true // the transaction may be another one now
		}
		if full {
			if dst, err = c.open(path); err != nil {
				return err
			}
		}
		if v == nil {
			return nil
		}
		n := int64(len(k) + len(v))
		c.bytes += n
		c.meter.within(n, c.used)
		return dst.Put(k, v)
	})
}

func (c *copier) open(path [][]byte) (*bolt.Bucket, error) {
	b, err := c.tx.CreateBucketIfNotExists(path[0])
	for _, name := range path[1:] {
		if err != nil {
			return nil, err
		}
		b, err = b.CreateBucketIfNotExists(name)
	}
	if err != nil {
		return nil, err
	}
	b.FillPercent = 1 // keys come in order
	return b, nil
}

// next bounds the memory that a copy takes.
func (c *copier) next() error {
	if err := c.tx.Commit(); err != nil {
		return err
	}
	tx, err := c.dst.Begin(true)
	if err == nil {
		c.tx, c.bytes = tx, 0
	}
	return err
}

// isOurs: our buckets hold no others.
func isOurs(name []byte) bool {
	return string(name) == string(bucketOpenings) || slices.ContainsFunc(buckets, func(b []byte) bool { return string(b) == string(name) })
}
