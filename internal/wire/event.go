// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// Event is an event of the journal in JSON.
type Event struct {
	Sequence  journal.Sequence `json:"sequence"`
	Time      time.Time        `json:"time"` // UTC
	Epoch     journal.Epoch    `json:"epoch"`
	Kind      string           `json:"kind"`
	Reason    journal.Reason   `json:"reason"`
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	UID       types.UID        `json:"uid"`
	Version   journal.Version  `json:"version"`
	Status    *v1.PodStatus    `json:"status,omitempty"`

	Incarnation journal.Incarnation `json:"incarnation,omitempty"`
	Finished    bool                `json:"finished,omitempty"`
	Attributes  map[string]string   `json:"attributes,omitempty"`
	// Error says what is damaged: the status, or all but the sequence.
	Error string `json:"error,omitempty"`
}

// Bare returns the event without its status, which may be large and is often not
// looked at.
func Bare(e *journal.Event) Event {
	return Event{Sequence: e.Sequence, Time: e.Time.UTC(), Epoch: e.Epoch, Kind: e.Kind.String(), Reason: e.Reason,
		Namespace: e.Namespace, Name: e.Name, UID: e.UID, Version: e.Version,
		Incarnation: e.Incarnation, Finished: e.Finished, Attributes: e.Attributes}
}

// Status decodes the status that an event carries; nil if it carries none.
func Status(e *journal.Event) (*v1.PodStatus, error) {
	switch {
	case len(e.Status) == 0 && e.ContentType == "":
		return nil, nil
	case e.ContentType != journal.ContentTypeProtobuf:
		return nil, fmt.Errorf("sequence %d: status of unknown content type %q", e.Sequence, e.ContentType)
	}
	s, err := podstatus.Decode(e.Status)
	if err != nil {
		return nil, fmt.Errorf("sequence %d: %w", e.Sequence, err)
	}
	return s, nil
}

// Whole returns the event with its status. If that can't be decoded, Error says
// why and the rest is there.
func Whole(e *journal.Event) Event {
	out := Bare(e)
	status, err := Status(e)
	if err != nil {
		out.Error = err.Error()
	}
	out.Status = status
	return out
}
