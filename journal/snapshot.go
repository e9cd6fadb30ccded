// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	bolt "go.etcd.io/bbolt"
)

const snapshotSuffix = ".snapshot-"

// Snapshot writes a consistent copy of the live journal to path, which must not
// exist, with mode 0600. The copy is verified and synced before it gets that
// name. Writers go on meanwhile; the read transaction lasts as long as the copy
// to the local disk takes.
func (j *Journal) Snapshot(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("snapshot to %s: %w", path, fs.ErrExist)
	}
	f, err := createTemp(path, snapshotSuffix)
	if err != nil {
		return fmt.Errorf("snapshot to %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := j.copyTo(ctx, f); err != nil {
		return fmt.Errorf("snapshot to %s: %w", path, err)
	}
	if err := publish(f.Name(), path); err != nil {
		return fmt.Errorf("snapshot to %s: %w", path, err)
	}
	return nil
}

// SnapshotFile returns an open, verified copy of the live journal that has no
// name any more, for a reader that may be slow: it holds no transaction, and
// its space is freed when it is closed. The copy lies in the journal's directory.
func (j *Journal) SnapshotFile(ctx context.Context) (*os.File, error) {
	f, err := createTemp(j.path, snapshotSuffix)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	err = j.copyTo(ctx, f)
	err = errors.Join(err, os.Remove(f.Name()))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return f, nil
}

func (j *Journal) copyTo(ctx context.Context, f *os.File) error {
	w := &contextWriter{ctx: ctx, w: f}
	size := int64(0)
	err := j.read(func(tx *bolt.Tx) error {
		size = tx.Size()
		w.meter = newMeter(ctx, 2*size)
		_, err := tx.WriteTo(w)
		return err
	})
	if err != nil {
		return errors.Join(err, w.err) // the engine keeps only the text of some
	}
	if err := errors.Join(stampCopy(f), f.Sync()); err != nil {
		return err
	}
	return verifyCopy(w.meter.part(ctx, size), f.Name())
}

func verifyCopy(ctx context.Context, path string) error {
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		return err
	}
	result, err := r.Verify(ctx, nil)
	err = errors.Join(err, r.Close())
	if err == nil && result.Problems > 0 {
		err = &CorruptError{Path: path, Kind: ErrCorrupt, Hint: hintVerify, Err: fmt.Errorf("the copy has %d problems", result.Problems)}
	}
	return err
}

// contextWriter stops a copy when ctx ends.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
	err error

	meter *meter
}

func (c *contextWriter) Write(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		c.err = context.Cause(c.ctx)
		return 0, c.err
	}
	n, err := c.w.Write(b)
	c.err = err
	c.meter.add(int64(n))
	return n, err
}
