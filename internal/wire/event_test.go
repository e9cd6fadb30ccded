// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// TestFields fixes names and order: other programs read them.
func TestFields(t *testing.T) {
	raw, err := podstatus.Encode(&v1.PodStatus{Phase: v1.PodRunning})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 31, 3, 0, 0, 5000, time.FixedZone("", 3600))
	e := journal.Event{Kind: journal.KindSet, Reason: journal.ReasonReadiness, Sequence: 7, Epoch: 2, Time: at, UID: "u", Namespace: "ns", Name: "n",
		Version: 3, Incarnation: 1, Finished: true, ContentType: journal.ContentTypeProtobuf, Status: raw, Attributes: map[string]string{"k": "v"}}
	tests := []struct {
		name string
		in   Event
		want string
	}{
		{"whole", Whole(&e), `{"sequence":7,"time":"2026-01-31T02:00:00.000005Z","epoch":2,"kind":"set","reason":"readiness","namespace":"ns","name":"n","uid":"u","version":3,"status":{"phase":"Running"},"incarnation":1,"finished":true,"attributes":{"k":"v"}}`},
		{"bare", Bare(&e), `{"sequence":7,"time":"2026-01-31T02:00:00.000005Z","epoch":2,"kind":"set","reason":"readiness","namespace":"ns","name":"n","uid":"u","version":3,"incarnation":1,"finished":true,"attributes":{"k":"v"}}`},
		{"damaged", Event{Sequence: 9, Error: "checksum"}, `{"sequence":9,"time":"0001-01-01T00:00:00Z","epoch":0,"kind":"","reason":"","namespace":"","name":"","uid":"","version":0,"error":"checksum"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := json.Marshal(tt.in)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name  string
		event journal.Event
		want  string // of the error; "" for none
	}{
		{"none", journal.Event{Kind: journal.KindRemoved, Sequence: 4}, ""},
		{"unknown encoding", journal.Event{Sequence: 4, ContentType: "cbor", Status: []byte{1}}, `sequence 4: status of unknown content type "cbor"`},
		{"garbled", journal.Event{Sequence: 4, ContentType: journal.ContentTypeProtobuf, Status: []byte{0xff, 0xff}}, "sequence 4: decode pod status"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			whole := Whole(&tt.event)
			if tt.want == "" && whole.Error != "" || !strings.HasPrefix(whole.Error, tt.want) {
				t.Errorf("got %q, want %q", whole.Error, tt.want)
			}
			if whole.Status != nil {
				t.Errorf("got a status: %v", whole.Status)
			}
		})
	}
}
