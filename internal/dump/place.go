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

// standardInput is FILE for a copy that is piped in.
const standardInput = "-"

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
		return place{}, usagef("one FILE only: %q is too much", args[1:])
	case args[0] == "":
		return place{}, usagef("FILE is empty")
	}
	if isSocket(args[0]) {
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
	case p.path == standardInput:
		f, err := unlinkedCopy(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return openCopy(f, "standard input")
	default:
		return openFile(p.path)
	}
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// journalIn returns the journal of a data directory, and any other file as it is.
// What is no file is refused before it is opened: a pipe would wait for a writer,
// and a device may do anything.
func journalIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		dir := path
		path = filepath.Join(dir, journal.FileName)
		if info, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot open %s: it is a directory without a %s", dir, journal.FileName)
		}
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return "", fmt.Errorf("cannot open %s: %w", path, pathErr.Err)
	}
	if err != nil {
		return "", fmt.Errorf("cannot open %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("cannot open %s: it is %s", path, notFile(info.Mode(), path))
	}
	return path, nil
}

// notFile says what is there instead of a file, and what to type.
func notFile(mode fs.FileMode, path string) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe, not a file; what comes through a pipe is read from standard input: put - for FILE"
	case mode&fs.ModeSocket != 0:
		return "a socket, not a file; to read from the agent that serves it, type --socket " + path
	case mode&fs.ModeDevice != 0:
		return "a device, not a file; name a journal or a data directory"
	case mode.IsDir():
		return "a directory, not a file; name a journal or a data directory"
	default:
		return "not a file; name a journal or a data directory"
	}
}

func openFile(name string) (*source, error) {
	path, err := journalIn(name)
	if err != nil {
		return nil, err
	}
	src, err := openSource(path, path)
	if errors.Is(err, journal.ErrLocked) {
		return nil, fmt.Errorf("cannot open %s: %w; if that is a running agent, read it through its socket: --socket %s", path, journal.ErrLocked, socketBeside(path))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	return src, nil
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
	src, err := openSource(path, name)
	if err != nil {
		d := damage{source: name, path: path}
		return nil, errors.Join(fmt.Errorf("cannot open the %s: %s", name, d.rename(err.Error())), f.Close())
	}
	src.copy = f
	return src, nil
}
