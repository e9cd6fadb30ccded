// SPDX-License-Identifier: Apache-2.0

package agent

import "errors"

// Errors of Run, beside those of opening a journal.
var (
	// ErrConfig: a setting is missing or out of its bounds.
	ErrConfig = errors.New("bad configuration")
	// ErrInsecure: others may change the data directory.
	ErrInsecure = errors.New("data directory is not safe")
	// ErrSocketInUse: another process answers on the socket.
	ErrSocketInUse = errors.New("socket is in use by another process")
	// ErrNotSocket: there is something else under the socket's name.
	ErrNotSocket = errors.New("not a socket")
	// ErrJournalFailed: the journal can't be written by this process any more.
	ErrJournalFailed = errors.New("journal failed; a restart is needed")
)
