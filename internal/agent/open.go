// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// openManager opens the journal, which takes its lock.
func openManager(c Config, o manager.Options) (*manager.Manager, error) {
	m, err := manager.Open(o)
	switch {
	case err == nil:
	case errors.Is(err, journal.ErrEmpty) && !exists(o.Path+journal.MarkSuffix):
		m, err = startAnew(o, c.Logger)
	case !movable(err), !isFile(o.Path):
	case c.MoveDamagedAside:
		m, err = moveAside(o, c.Logger, err)
	default:
		err = fmt.Errorf("%w; or start once with --move-damaged-aside, which keeps the file under another name", err)
	}
	if err != nil {
		return nil, err
	}
	logOpened(m, c.Logger)
	return m, nil
}

// movable says whether a journal is lost to this program. One that is in use, of
// a newer release or of another node is healthy, and nobody may touch it.
func movable(err error) bool {
	for _, healthy := range []error{journal.ErrLocked, journal.ErrNewerFormat, journal.ErrWrongNode} {
		if errors.Is(err, healthy) {
			return false
		}
	}
	for _, lost := range []error{journal.ErrCorrupt, journal.ErrTruncated, journal.ErrNotJournal, journal.ErrEmpty, journal.ErrMissing} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// isFile says whether there is a file or nothing. A device or a pipe is no journal
// that was damaged, and not the agent's to rename: the path may be a link to it.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular()
}

// startAnew replaces an empty file that was never a journal, such as one made in
// advance for its owner and mode. With the initialised mark it is a lost journal.
func startAnew(o manager.Options, log *slog.Logger) (*manager.Manager, error) {
	info, err := os.Stat(o.Path)
	if err != nil || info.Size() != 0 {
		return nil, fmt.Errorf("journal %s changed while it was opened: %w", o.Path, journal.ErrEmpty)
	}
	if err := os.Remove(o.Path); err != nil {
		return nil, fmt.Errorf("replace empty journal: %w", err)
	}
	m, err := manager.Open(o)
	if err != nil {
		return nil, err
	}
	log.Warn("journal file was there but empty; starting as a new store", logkey.Path, o.Path)
	return m, nil
}

// moveAside renames a lost journal and starts with a new one.
func moveAside(o manager.Options, log *slog.Logger, cause error) (*manager.Manager, error) {
	aside, err := journal.MoveAside(o.Path, time.Now())
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	log.Warn("journal is not readable; it was moved aside, starting as a new store", logkey.Path, aside, logkey.Err, cause)
	return manager.Open(o)
}

func logOpened(m *manager.Manager, log *slog.Logger) {
	s := m.Status()
	events := uint64(0)
	if stats, err := m.Journal().Stats(); err == nil {
		events = stats.Events
	}
	log.Info("journal opened", logkey.Path, s.Journal, logkey.Epoch, s.Epoch, logkey.Sequence, s.HeadSequence,
		logkey.Pods, s.Pods, logkey.Pending, s.Pending, logkey.Events, events, logkey.Bytes, s.JournalBytes, logkey.Unclean, s.UncleanStart)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
