// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasHoles reports whether the file has fewer blocks than bytes.
func hasHoles(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Blocks*512 < info.Size()
}

// allocate extends the file with real blocks. supported is false on file
// systems that cannot.
func allocate(f *os.File, size, by int64) (supported bool, err error) {
	err = unix.Fallocate(int(f.Fd()), 0, size, by)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}
