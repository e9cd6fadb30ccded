// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Causes of an EventError.
var (
	// ErrOutOfOrder: a sequence or version is not above the one before it.
	ErrOutOfOrder = errors.New("event is out of order")
	// ErrContentType: the status has an encoding that this program does not know.
	ErrContentType = errors.New("unknown content type")
	// ErrNoUID: the event names no pod.
	ErrNoUID = errors.New("event has no UID")
)

// EventError says which event could not be folded. It unwraps to the cause: one
// of the sentinels above, or what podstatus.Decode returned.
type EventError struct {
	UID      types.UID
	Sequence journal.Sequence
	Err      error
}

func (e *EventError) Error() string {
	return fmt.Sprintf("apply event %d of pod %q: %v", e.Sequence, e.UID, e.Err)
}

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }
