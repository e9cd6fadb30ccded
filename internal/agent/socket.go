// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxSocketPath is what the kernel has room for.
	maxSocketPath = 107
	socketMode    = 0o600
	groupMode     = 0o660
	wideMode      = 0o666 // the lists decide, by the peer's credentials
	probeTimeout  = time.Second
)

// socket is a listening unix socket.
type socket struct {
	*net.UnixListener
	path string
	info os.FileInfo // which file it is
}

// checkSocket finds what can't work before anything is touched. The socket's
// directory is made if only it is missing; the data directory is made in any case.
func checkSocket(c Config) error {
	if len(c.Socket) > maxSocketPath {
		return fmt.Errorf("%w: socket path %s has %d bytes, at most %d are possible; choose another with --socket", ErrConfig, c.Socket, len(c.Socket), maxSocketPath)
	}
	dir := filepath.Dir(c.Socket)
	if filepath.Clean(dir) == c.DataDir {
		return nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if parent := filepath.Dir(dir); parent == c.DataDir {
			return nil
		} else {
			dir = parent
		}
		info, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: directory of socket: %w", ErrConfig, err)
	case !info.IsDir():
		return fmt.Errorf("%w: directory of socket: %s is not a directory", ErrConfig, dir)
	}
	return nil
}

// listenSocket makes the unix socket, in place of one that a dead process left.
// It is closed to others from the moment it exists, and opened as far as a says.
func listenSocket(ctx context.Context, path string, a access) (*socket, error) {
	dir := filepath.Dir(path)
	if err := makeSocketDir(dir, a); err != nil {
		return nil, err
	}
	// Two agents that find the same stale socket must not replace each other's.
	unlock, err := lockDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := clearStale(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: closedFromBirth}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w", err)
	}
	s := &socket{UnixListener: l.(*net.UnixListener), path: path}
	s.SetUnlinkOnClose(false) // by then it may be another agent's
	if err := s.open(a); err != nil {
		return nil, errors.Join(err, s.Close(), os.Remove(path))
	}
	return s, nil
}

// closedFromBirth sets the mode that bind gives the file: a umask would be that
// of the whole process, and a chmod would come too late.
func closedFromBirth(_, _ string, c syscall.RawConn) error {
	var err error
	if controlErr := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), socketMode) }); controlErr != nil {
		return controlErr
	}
	return err
}

// open lets the group, or whom the lists name, connect, and checks what came out.
func (s *socket) open(a access) error {
	want := fs.FileMode(socketMode)
	switch {
	case a.wide():
		want = wideMode
	case a.group >= 0:
		want = groupMode
		if err := os.Chown(s.path, -1, a.group); err != nil {
			return fmt.Errorf("give socket to group %d: %w", a.group, err)
		}
	}
	if err := os.Chmod(s.path, want); err != nil {
		return fmt.Errorf("set mode of socket: %w", err)
	}
	info, err := os.Lstat(s.path)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if info.Mode().Perm() != want {
		return fmt.Errorf("socket %s has mode %04o, not %04o; its file system does not keep modes", s.path, info.Mode().Perm(), want)
	}
	s.info = info
	return nil
}

// remove deletes the file, unless it is no longer this socket's.
func (s *socket) remove() error {
	info, err := os.Lstat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, s.info) {
		return nil
	}
	if err == nil {
		err = os.Remove(s.path)
	}
	if err != nil {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}

// makeSocketDir makes the last element of the path, as after a reboot in /run.
func makeSocketDir(dir string, a access) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	switch {
	case err != nil:
	case a.wide():
		err = os.Chmod(dir, 0o755)
	case a.group >= 0:
		err = errors.Join(os.Chown(dir, -1, a.group), os.Chmod(dir, 0o750))
	}
	if err != nil {
		return fmt.Errorf("directory of socket: %w", err)
	}
	return nil
}

// reachable says whether others than the owner can get at what is in a directory.
func reachable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o011 != 0
}

// lockDir is held only while a socket is made.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("directory of socket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTimeout)
	defer cancel()
	for {
		err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { d.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			d.Close()
			return nil, fmt.Errorf("lock directory of socket %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			d.Close()
			return nil, fmt.Errorf("lock directory of socket %s: %w", dir, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// clearStale removes a socket on which nobody listens.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: %w; move it away, or choose another path with --socket", path, ErrNotSocket)
	}
	d := net.Dialer{Timeout: probeTimeout}
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
	}
	// Only a refusal proves that nobody listens: a timeout or a full queue does not.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s: %w; stop it, or choose another path with --socket", path, ErrSocketInUse)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}
