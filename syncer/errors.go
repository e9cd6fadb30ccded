// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
)

// Errors of using a Syncer or LivePods.
var (
	// ErrOptions: an option is missing or out of its bounds.
	ErrOptions = errors.New("bad syncer options")
	// ErrRunning: Run was called before. It may be called once.
	ErrRunning = errors.New("already running")
	// ErrNotDelivered: SyncOnce or Drain ended and the server still lacks a
	// status that could have been sent. See UndeliveredError.
	ErrNotDelivered = errors.New("statuses not delivered")
)

// Causes of ended requests, visible in Failing and in the log.
var (
	errRequestTimeout = errors.New("the API server did not answer in time")
	errWatchTimeout   = errors.New("the API server did not begin the watch in time")
)

var errServerDead = errors.New("the API server can't be reached")

// UndeliveredError says how many pods the server could not be told about, and
// what happened to one of them. It is ErrNotDelivered.
type UndeliveredError struct {
	Pods   int
	Reason string // of one of them; empty if they were not tried
	Err    error  // what ended the wait, or nil
}

func (e *UndeliveredError) Error() string {
	text := fmt.Sprintf("%v: %d pods", ErrNotDelivered, e.Pods)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives both the sentinel and the cause to errors.Is.
func (e *UndeliveredError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrNotDelivered}
	}
	return []error{ErrNotDelivered, e.Err}
}
