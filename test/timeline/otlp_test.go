// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"strings"
	"testing"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// TestOTLP: each line is a LogsData by OTLP's own types, unknown fields refused,
// and has each event once, in order.
func TestOTLP(t *testing.T) {
	path := incident(t)
	var last string
	records := 0
	for line := range strings.Lines(dumped(t, "export", "--format", "otlp", path)) {
		var data logs.LogsData
		if err := protojson.Unmarshal([]byte(line), &data); err != nil {
			t.Fatalf("%v in %.300s", err, line)
		}
		for _, resource := range data.ResourceLogs {
			if a := resource.Resource.Attributes; len(a) != 2 || a[1].Key != "k8s.node.name" || a[1].Value.GetStringValue() != "node-1" {
				t.Errorf("resource: got %v", a)
			}
			for _, scope := range resource.ScopeLogs {
				for _, r := range scope.LogRecords {
					records++
					if r.TimeUnixNano == 0 || r.SeverityNumber == 0 || r.Body.GetStringValue() == "" || !strings.HasPrefix(r.EventName, "statusstore.") {
						t.Errorf("record %d lacks something: %v", records, r)
					}
					if got := r.Attributes[0]; got.Key != "statusstore.sequence" || got.Value.GetIntValue() != int64(records) {
						t.Errorf("record %d: got %v first", records, got)
					}
					last = r.SeverityText
					if r.EventName == "statusstore.rejected" && r.SeverityNumber != logs.SeverityNumber_SEVERITY_NUMBER_WARN {
						t.Errorf("a refused update: got severity %v", r.SeverityNumber)
					}
				}
			}
		}
	}
	if want := strings.Count(dumped(t, "-o", "ndjson", path), "\n"); records != want {
		t.Errorf("got %d records for %d events", records, want)
	}
	if last != "INFO" {
		t.Errorf("a removal: got severity %s", last)
	}
}
