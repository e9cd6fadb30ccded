// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	temp, result, err := r.compactTo(ctx, filepath.Join(filepath.Dir(dst), "."+filepath.Base(dst)+compactingSuffix))
	if err != nil {
		return result, fmt.Errorf("compact journal %s: %w", src, err)
	}
	defer os.Remove(temp)
	if err := publish(temp, dst); err != nil {
		return result, fmt.Errorf("compact journal %s: %w", src, err)
	}
	return result, nil
}

// compactTo writes a verified copy under a temporary name that begins with prefix.
func (v *view) compactTo(ctx context.Context, prefix string) (temp string, result CompactResult, err error) {
	f, err := os.CreateTemp(filepath.Dir(prefix), filepath.Base(prefix))
	if err != nil {
		return "", result, err
	}
	temp = f.Name()
	f.Close()
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	dst, err := openBolt(temp, &bolt.Options{Timeout: lockRetry, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return "", result, err
	}
	v.mu.RLock()
	err = guard(v.path, func() error { return bolt.Compact(dst, v.db, compactTxBytes) })
	v.mu.RUnlock()
	if err := errors.Join(err, guard(temp, dst.Close)); err != nil {
		return "", result, err
	}
	if err := verifyCopy(ctx, temp); err != nil {
		return "", result, err
	}
	before, err1 := os.Stat(v.path)
	after, err2 := os.Stat(temp)
	if err := errors.Join(err1, err2); err != nil {
		return "", result, err
	}
	return temp, CompactResult{Before: before.Size(), After: after.Size()}, nil
}

// compactAtOpen replaces a file that is mostly free pages by a compacted one.
// A crash leaves the old or the new file, both complete, and at most one
// temporary file, which the next open removes.
func (j *Journal) compactAtOpen() error {
	pre, err := preflight(j.path, branches)
	if err != nil {
		return err
	}
	info, err := os.Stat(j.path)
	if err != nil {
		return err
	}
	if info.Size() < compactMinBytes || pre.freeBytes < info.Size()/compactFreeShare {
		return nil
	}
	temp, result, err := j.compactTo(context.Background(), j.path+compactingSuffix)
	if err != nil {
		// The journal is as good as before, only larger than it need be.
		j.log.Warn("journal compaction fails", "path", j.path, "err", err)
		return nil
	}
	// The old file stays locked until it has lost its name, so that nobody else
	// can open it in between; who waits for that lock checks the name after.
	if err := errors.Join(os.Rename(temp, j.path), syncDir(filepath.Dir(j.path))); err != nil {
		os.Remove(temp)
		return fmt.Errorf("compact journal %s: %w", j.path, err)
	}
	j.log.Info("journal is compacted", "path", j.path, "bytesBefore", result.Before, "bytesAfter", result.After)
	_, err = j.reopen()
	return err
}
