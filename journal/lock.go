// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

type lockMode int

const (
	lockShared    lockMode = unix.LOCK_SH
	lockExclusive lockMode = unix.LOCK_EX
)

const lockRetry = 25 * time.Millisecond

// probeLock waits until no other process writes the file, so that the checks
// that follow don't read pages in the middle of a commit.
func probeLock(path string, timeout time.Duration, mode lockMode) (unlock func(), err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(lockRetry) {
		err := unix.Flock(int(f.Fd()), int(mode)|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			f.Close()
			return nil, fmt.Errorf("lock journal %s: %w", path, err)
		case time.Now().After(deadline):
			f.Close()
			return nil, lockedError(path)
		}
	}
}

// openRegular opens a file for reading. Opening a named pipe would wait for
// somebody who writes to it, and opening a device may do anything.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &CorruptError{Path: path, Kind: ErrNotJournal, Err: fmt.Errorf("it is %s, not a regular file", kindOfFile(info.Mode()))}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return f, nil
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "of another kind"
	}
}
