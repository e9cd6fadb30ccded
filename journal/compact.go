// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	compactingSuffix = ".compacting-"
	// compactTxBytes bounds the memory that copying takes.
	compactTxBytes = 4 << 20
	// Compaction at open pays off only for a file that is mostly free pages; a
	// journal under its retention limits stays far from it.
	compactMinBytes  = 4 << 20
	compactFreeShare = 2 // free pages are more than 1/2 of the file
)

// CompactResult says what compaction did.
type CompactResult struct {
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
}

// Compact writes a smaller copy of the journal at src, which must not be open
// for writing, to dst, which must not exist. The copy is verified and synced
// before it gets its name; its mode is 0600. src is only read.
func Compact(ctx context.Context, src, dst string) (CompactResult, error) {
	if _, err := os.Lstat(dst); err == nil {
		return CompactResult{}, fmt.Errorf("compact to %s: %w", dst, fs.ErrExist)
	}
	r, err := OpenReadOnly(src, ReadOptions{})
	if err != nil {
		return CompactResult{}, err
	}
	defer r.Close()
	if len(r.structure) > 0 {
		return CompactResult{}, fmt.Errorf("compact journal %s: %w", src, structureError(src, r.structure[0]))
	}
	f, err := createTemp(dst, compactingSuffix)
	if err != nil {
		return CompactResult{}, fmt.Errorf("compact to %s: %w", dst, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	result, err := r.compactTo(ctx, f)
	if err != nil {
		return result, fmt.Errorf("compact journal %s: %w", src, err)
	}
	if err := publish(f.Name(), dst); err != nil {
		return result, fmt.Errorf("compact to %s: %w", dst, err)
	}
	return result, nil
}

// compactTo writes a verified copy into an empty file.
func (v *view) compactTo(ctx context.Context, f *os.File) (result CompactResult, err error) {
	temp := f.Name()
	if err := letGo(f); err != nil {
		return result, err
	}
	dst, err := openBolt(temp, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return result, err
	}
	c := &copier{dst: dst, free: v.freeBytes}
	err = v.read(func(tx *bolt.Tx) error { return c.all(ctx, tx) })
	if err := errors.Join(err, guard(temp, dst.Close), hold(f)); err != nil {
		return result, err
	}
	if err := fit(f); err != nil {
		return result, err
	}
	if v.copyNumber != 0 { // still the copy that it was
		if err := errors.Join(stamp(f, v.copyNumber), f.Sync()); err != nil {
			return result, err
		}
	}
	if err := verifyCopy(c.meter.part(ctx, c.used), temp); err != nil {
		return result, err
	}
	before, err1 := os.Stat(v.path)
	after, err2 := os.Stat(temp)
	if err := errors.Join(err1, err2); err != nil {
		return result, err
	}
	return CompactResult{Before: before.Size(), After: after.Size()}, nil
}

// compactAtOpen replaces a file that is mostly free pages by a compacted one.
// A crash leaves the old or the new file, both complete, and at most one
// temporary file, which the next open removes.
func (j *Journal) compactAtOpen() error {
	info, err := os.Stat(j.path)
	if err != nil {
		return err
	}
	if info.Size() < compactMinBytes || j.freeBytes < info.Size()/compactFreeShare {
		return nil
	}
	var result CompactResult
	f, err := os.CreateTemp(filepath.Dir(j.path), filepath.Base(j.path)+compactingSuffix)
	if err == nil {
		result, err = j.compactTo(context.Background(), f)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}
	if err != nil {
		// The journal is as good as before, only larger than it need be.
		j.log.Warn("journal compaction fails", "path", j.path, "err", err)
		return nil
	}
	// The old file stays locked until it has lost its name, so that nobody else
	// can open it in between; who waits for that lock checks the name after.
	if err := errors.Join(os.Rename(f.Name(), j.path), syncDir(filepath.Dir(j.path))); err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("compact journal %s: %w", j.path, err)
	}
	j.log.Info("journal is compacted", "path", j.path, "bytesBefore", result.Before, "bytesAfter", result.After)
	_, err = j.reopen()
	return err
}
