// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// inodeOf includes the time of birth: file systems use numbers again at once.
func inodeOf(path string) (Inode, error) {
	return statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW)
}

func inodeOfFD(fd int) (Inode, error) { return statx(fd, "", unix.AT_EMPTY_PATH) }

func statx(fd int, path string, flags int) (Inode, error) {
	var s unix.Statx_t
	if err := unix.Statx(fd, path, flags, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return "", err
	}
	return Inode(fmt.Sprintf("%d-%d.%d", s.Ino, s.Btime.Sec, s.Btime.Nsec)), nil
}
