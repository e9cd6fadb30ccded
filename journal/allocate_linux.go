// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate extends the file with real blocks. supported is false on file
// systems that cannot.
func allocate(f *os.File, size, by int64) (supported bool, err error) {
	err = unix.Fallocate(int(f.Fd()), 0, size, by)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return false, nil
	}
	return true, err
}
