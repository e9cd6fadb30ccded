// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// Event is an event as it is printed, and as the agent's event stream has it.
type Event struct {
	Sequence    journal.Sequence    `json:"sequence"`
	Time        time.Time           `json:"time"`
	Epoch       journal.Epoch       `json:"epoch"`
	Kind        string              `json:"kind"`
	Reason      journal.Reason      `json:"reason"`
	Namespace   string              `json:"namespace"`
	Name        string              `json:"name"`
	UID         types.UID           `json:"uid"`
	Version     journal.Version     `json:"version"`
	Status      *v1.PodStatus       `json:"status,omitempty"`
	Incarnation journal.Incarnation `json:"incarnation,omitempty"`
	Finished    bool                `json:"finished,omitempty"`
	Attributes  map[string]string   `json:"attributes,omitempty"`
	// Changes are what the event changed in its pod's status, if asked for.
	Changes []Change `json:"changes,omitempty"`

	contentType journal.ContentType
	raw         []byte // the status, not decoded yet
}

// fromJournal leaves the status encoded: most events of a filtered dump are
// never looked at further.
func fromJournal(e journal.Event) Event {
	return Event{Sequence: e.Sequence, Time: e.Time, Epoch: e.Epoch, Kind: e.Kind.String(), Reason: e.Reason,
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, Version: e.Version, Incarnation: e.Incarnation,
		Finished: e.Finished, Attributes: e.Attributes, contentType: e.ContentType, raw: e.Status}
}

// decode fills in the status. An event without one keeps nil.
func (e *Event) decode() error {
	if e.Status != nil || len(e.raw) == 0 && e.contentType == "" {
		return nil
	}
	if e.contentType != journal.ContentTypeProtobuf {
		return fmt.Errorf("sequence %d: status of unknown content type %q", e.Sequence, e.contentType)
	}
	s, err := podstatus.Decode(e.raw)
	if err != nil {
		return fmt.Errorf("sequence %d: %w", e.Sequence, err)
	}
	e.Status = s
	return nil
}

func (e *Event) pod() string {
	if e.Name == "" && e.Namespace == "" {
		return "-"
	}
	return e.Namespace + "/" + e.Name
}
