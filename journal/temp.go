// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Copies are written under a temporary name in the user's directory. A process
// that is killed leaves them, so the next one that copies to the same name removes
// what is provably nobody's: the name is ours, and no process holds its lock.

// createTemp creates .NAME SUFFIX RANDOM beside target, with mode 0600, and locks
// it for as long as it stays open.
func createTemp(target, suffix string) (*os.File, error) {
	dir, prefix := filepath.Dir(target), "."+filepath.Base(target)+suffix
	removeStale(dir, prefix)
	for {
		f, err := os.CreateTemp(dir, prefix)
		if err != nil {
			return nil, err
		}
		if err := hold(f); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		// Between its creation and its lock another process may have taken it for
		// a leftover.
		if sameFile(f, f.Name()) == nil {
			return f, nil
		}
		f.Close()
	}
}

// hold takes the shared lock that tells others to leave the file alone. The engine
// takes the same lock, so it is let go of while a copy is open for writing.
func hold(f *os.File) error { return ignoreUnsupported(unix.Flock(int(f.Fd()), unix.LOCK_SH)) }

func letGo(f *os.File) error { return ignoreUnsupported(unix.Flock(int(f.Fd()), unix.LOCK_UN)) }

// fit cuts off what the engine has taken in advance and not used.
func fit(f *os.File) error {
	metas, errs := readMetas(f)
	if len(metas) != 2 {
		return errors.Join(errs...)
	}
	pages := max(metas[0].highWater, metas[1].highWater)
	return errors.Join(f.Truncate(int64(pages)*int64(metas[0].pageSize)), f.Sync())
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// removeStale does what it can: a leftover is no reason not to make a copy.
func removeStale(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		random, ours := strings.CutPrefix(e.Name(), prefix)
		if ours && random != "" && strings.Trim(random, "0123456789") == "" && e.Type().IsRegular() {
			removeUnlocked(filepath.Join(dir, e.Name()))
		}
	}
}

func removeUnlocked(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && sameFile(f, path) == nil {
		os.Remove(path) //nolint:errcheck // see removeStale
	}
}
