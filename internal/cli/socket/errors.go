// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ErrNotRunning: nobody answers on the socket.
var ErrNotRunning = errors.New("agent is not reachable")

// maxPath is the longest path of a unix socket on Linux, without its final NUL.
const maxPath = 107

// NotRunningError says why the socket could not be reached. It is ErrNotRunning.
type NotRunningError struct {
	Path string
	Err  error
}

func (e *NotRunningError) Error() string {
	switch {
	case len(e.Path) > maxPath:
		return fmt.Sprintf("connect to %s: the path of a socket has at most %d bytes; choose a shorter one with --socket", e.Path, maxPath)
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("connect to %s: there is no such socket; is the agent running? (--socket or STATUSSTORE_SOCKET says where)", e.Path)
	case errors.Is(e.Err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connect to %s: nobody listens; is the agent running?", e.Path)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("connect to %s: permission denied; run this as the agent's user", e.Path)
	default:
		return fmt.Sprintf("connect to %s: %v; is the agent running?", e.Path, e.Err)
	}
}

// Unwrap gives both the sentinel and the cause to errors.Is.
func (e *NotRunningError) Unwrap() []error { return []error{ErrNotRunning, e.Err} }
