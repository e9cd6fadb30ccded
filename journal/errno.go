// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"strings"
	"syscall"
)

// diskErrors are what a caller can act on.
var diskErrors = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS, syscall.ENOMEM}

// engineError gives an error of the engine its cause back.
type engineError struct {
	error
	cause syscall.Errno
}

func (e *engineError) Unwrap() []error { return []error{e.error, e.cause} }

// withCause finds the cause of an engine's error: bbolt puts some of them into its
// text only (when the file grows, when it copies a meta page), and errors.Is would
// not know a full disk.
func withCause(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return err
	}
	text := err.Error()
	for _, cause := range diskErrors {
		if strings.HasSuffix(text, cause.Error()) {
			return &engineError{err, cause}
		}
	}
	return err
}
