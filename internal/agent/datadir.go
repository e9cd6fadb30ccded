// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/journal"
)

// prepareDataDir makes the data directory if it is missing and refuses one in
// which others could replace the journal: as sshd does with its files, one that is
// another user's, or that the group or everybody may write to.
func prepareDataDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	// The mode goes with the creation: the directory is never open to others.
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrConfig, dir)
	}
	mode := info.Mode().Perm()
	who := ""
	switch {
	case mode&0o002 != 0:
		who = "everybody"
	case mode&0o020 != 0:
		who = "its group"
	}
	if who != "" {
		return fmt.Errorf("%w: %s may write to %s (mode %04o); run \"chmod 0700 %s\"", ErrInsecure, who, dir, mode, dir)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, and this process runs as %d; run \"chown %d %s\", or run as that user",
			ErrInsecure, dir, stat.Uid, os.Geteuid(), os.Geteuid(), dir)
	}
	return nil
}

// tighten closes files of the journal that others could read, and says so: what
// is in them may have been read already.
func tighten(path string, log *slog.Logger) error {
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || !e.Type().IsRegular() {
			continue
		}
		file := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			continue // gone meanwhile, or fine
		}
		if err := os.Chmod(file, 0o600); err != nil {
			return fmt.Errorf("close %s to others: %w", file, err)
		}
		log.Warn("journal was open to others; its mode is 0600 now", logkey.Path, file, logkey.Permissions, fmt.Sprintf("%04o", info.Mode().Perm()))
	}
	return nil
}

// journalPath is the journal's file, behind a link if there is one.
func journalPath(dir string) string {
	path := filepath.Join(dir, journal.FileName)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
