// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statusstore/statusstore/journal"
)

// socketName is the agent's socket in its data directory.
const socketName = "statusstore.sock"

// source is a journal that is open for reading, wherever it came from.
type source struct {
	*journal.Reader
	name string   // what the user calls it
	path string   // what was opened
	copy *os.File // the unlinked copy; nil for a file
	from *agent   // whom it was fetched from; nil otherwise
}

func (s *source) Close() error {
	err := s.Reader.Close()
	if s.copy != nil {
		err = errors.Join(err, s.copy.Close())
	}
	return err
}

// place is where to read: exactly one of a path and a socket.
type place struct {
	path   string // a file, a data directory, or "-" for standard input
	socket string
}

// placeOf combines the arguments and the flag.
func placeOf(args []string, socket string) (place, error) {
	switch {
	case socket != "" && len(args) > 0:
		return place{}, usagef("both FILE and --socket: %q and %q", args[0], socket)
	case socket != "":
		return place{socket: socket}, nil
	case len(args) == 0:
		return place{}, usagef("no journal: name a FILE, a data directory, or --socket PATH of a running agent")
	case len(args) > 1:
		return place{}, usagef("too many arguments: %q", args[1:])
	case args[0] == "":
		return place{}, usagef("FILE is empty")
	}
	if info, err := os.Stat(args[0]); err == nil && info.Mode()&fs.ModeSocket != 0 {
		return place{socket: args[0]}, nil
	}
	return place{path: args[0]}, nil
}

// open opens the place for reading.
func (p place) open(ctx context.Context, stdin io.Reader) (*source, error) {
	switch {
	case p.socket != "":
		from := newAgent(p.socket)
		f, err := from.snapshot(ctx)
		if err != nil {
			return nil, err
		}
		src, err := openCopy(f, "snapshot of "+p.socket)
		if err != nil {
			return nil, err
		}
		src.from = from
		return src, nil
	case p.path == "-":
		f, err := unlinkedCopy(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return openCopy(f, "standard input")
	default:
		return openFile(p.path)
	}
}

// journalIn returns the journal of a data directory, and any other path as it is.
func journalIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, nil // opening it tells what is wrong
	}
	file := filepath.Join(path, journal.FileName)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot open %s: it is a directory without a %s", path, journal.FileName)
	}
	return file, nil
}

func openFile(name string) (*source, error) {
	path, err := journalIn(name)
	if err != nil {
		return nil, err
	}
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if errors.Is(err, journal.ErrLocked) {
		socket := filepath.Join(filepath.Dir(path), socketName)
		return nil, fmt.Errorf("cannot open %s: %w; if that is a running agent, read it through its socket: --socket %s", path, journal.ErrLocked, socket)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return &source{Reader: r, name: path, path: path}, nil
}

// maxCopyBytes bounds what a socket or a pipe may make us write to disk.
const maxCopyBytes = 16 << 30

// unlinkedCopy stores a stream in a file without a name: whatever happens to
// this process, nothing stays behind, and nobody else can open it.
func unlinkedCopy(r io.Reader) (*os.File, error) {
	f, err := os.CreateTemp("", "journal-dump-") // mode 0600
	if err != nil {
		return nil, err
	}
	err = os.Remove(f.Name())
	if err == nil {
		var n int64
		n, err = io.Copy(f, io.LimitReader(r, maxCopyBytes+1))
		if err == nil && n > maxCopyBytes {
			err = fmt.Errorf("more than %d bytes", int64(maxCopyBytes))
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openCopy(f *os.File, name string) (*source, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		d := damage{source: name, path: path}
		return nil, errors.Join(fmt.Errorf("cannot open the %s: %s", name, d.rename(err.Error())), f.Close())
	}
	return &source{Reader: r, name: name, path: path, copy: f}, nil
}
