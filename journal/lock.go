// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
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
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
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
