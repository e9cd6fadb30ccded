// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of opening a journal.
var (
	// ErrLocked: another process has the file open.
	ErrLocked = errors.New("journal is in use by another process")
	// ErrNotJournal: the file is something else.
	ErrNotJournal = errors.New("not a journal")
	// ErrNewerFormat: the file was written by a newer release. It is healthy.
	ErrNewerFormat = errors.New("journal has a newer format")
	// ErrTruncated: the file is shorter than it says.
	ErrTruncated = errors.New("journal is truncated")
	// ErrEmpty: the file has no bytes at all. A journal never has: it was lost.
	ErrEmpty = errors.New("journal is empty")
	// ErrMissing: there is no file, in a directory that held a journal before.
	ErrMissing = errors.New("journal is missing")
	// ErrCorrupt: the file is damaged.
	ErrCorrupt = errors.New("journal is damaged")
	// ErrWrongNode: the file belongs to another node.
	ErrWrongNode = errors.New("journal belongs to another node")
)

// Errors of using a journal.
var (
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrDegraded: the disk refused the write. Reads go on; the write may be
	// tried again. The chain holds the cause, such as syscall.ENOSPC.
	ErrDegraded = errors.New("journal is degraded")
	// ErrNoPod: a finished or removed event for a UID that has no pod.
	ErrNoPod = errors.New("no such pod in the journal")
	// ErrTooLarge: a status or object exceeds MaxStatusBytes.
	ErrTooLarge = errors.New("status is too large for the journal")
)

// CorruptError says where a journal is damaged. It is ErrCorrupt, or one of the
// other sentinels of opening, and unwraps to the cause.
type CorruptError struct {
	Path     string
	Bucket   string   // empty if not known
	Sequence Sequence // 0 if not known
	Key      string   // of the record, if it is not an event's; Err names it too
	Page     uint64   // of the engine, and where it begins in the file; 0 if not known
	Offset   int64
	Hint     string // what helps
	Kind     error  // ErrCorrupt, ErrTruncated, …
	Err      error  // cause
}

func (e *CorruptError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", e.Kind, e.Path)
	if e.Bucket != "" {
		fmt.Fprintf(&b, ": bucket %s", e.Bucket)
	}
	if e.Sequence != 0 {
		fmt.Fprintf(&b, ": sequence %d", e.Sequence)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives both the sentinel and the cause to errors.Is.
func (e *CorruptError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
