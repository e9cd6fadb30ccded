// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// Event is an event as it is printed, and as the agent's event stream has it.
type Event struct {
	wire.Event
	// Changes are what the event changed in its pod's status, if asked for.
	Changes []Change `json:"changes,omitempty"`

	stored journal.Event // its status is not decoded yet
}

// fromJournal leaves the status encoded: most events of a filtered dump are
// never looked at further.
func fromJournal(e journal.Event) Event { return Event{Event: wire.Bare(&e), stored: e} }

// decode fills in the status. An event without one keeps nil.
func (e *Event) decode() (err error) {
	if e.Status == nil {
		e.Status, err = wire.Status(&e.stored)
	}
	return err
}

func (e *Event) pod() string {
	if e.Name == "" && e.Namespace == "" {
		return "-"
	}
	return e.Namespace + "/" + e.Name
}
