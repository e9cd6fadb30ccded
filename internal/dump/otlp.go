// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// OpenTelemetry logs in OTLP's JSON encoding: names in lowerCamelCase, 64-bit
// integers as strings, one LogsData a line. See
// https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/.

type otlpLogs struct {
	ResourceLogs []otlpResourceLogs `json:"resourceLogs"`
}

type otlpResourceLogs struct {
	Resource  otlpResource    `json:"resource"`
	ScopeLogs []otlpScopeLogs `json:"scopeLogs"`
}

type otlpResource struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpScopeLogs struct {
	Scope      otlpScope    `json:"scope"`
	LogRecords []otlpRecord `json:"logRecords"`
}

type otlpScope struct {
	Name string `json:"name"`
}

type otlpRecord struct {
	TimeUnixNano         string          `json:"timeUnixNano"`
	ObservedTimeUnixNano string          `json:"observedTimeUnixNano"`
	SeverityNumber       int             `json:"severityNumber"`
	SeverityText         string          `json:"severityText"`
	Body                 otlpValue       `json:"body"`
	Attributes           []otlpAttribute `json:"attributes"`
	EventName            string          `json:"eventName"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue has exactly one field set.
type otlpValue struct {
	String *string `json:"stringValue,omitempty"`
	Int    *string `json:"intValue,omitempty"`
	Bool   *bool   `json:"boolValue,omitempty"`
}

func otlpText(key, value string) otlpAttribute { return otlpAttribute{key, otlpValue{String: &value}} }

func otlpNumber[T ~uint64 | ~uint32 | ~int](key string, n T) otlpAttribute {
	return otlpAttribute{key, otlpValue{Int: new(fmt.Sprint(n))}}
}

// The severities that are used, as OTLP numbers them.
const (
	otlpInfo  = 9
	otlpWarn  = 13
	otlpError = 17
)

// otlpBatch is how many records one line has at most.
const otlpBatch = 100

// exportLogs writes the events as OpenTelemetry logs.
func (s *session) exportLogs(ctx context.Context, want filter) error {
	resource := otlpResource{Attributes: []otlpAttribute{otlpText("service.name", "statusstore")}}
	if node := s.redact.word("node", s.Info().Node); node != "" {
		resource.Attributes = append(resource.Attributes, otlpText("k8s.node.name", node))
	}
	var batch []otlpRecord
	write := func() error {
		if len(batch) == 0 {
			return nil
		}
		line := otlpLogs{[]otlpResourceLogs{{resource, []otlpScopeLogs{{otlpScope{"github.com/statusstore/statusstore/journal"}, batch}}}}}
		batch = batch[:0]
		if err := writeJSON(s.out, line); err != nil {
			return err
		}
		return s.out.WriteByte('\n')
	}
	for e, err := range s.tell(ctx, want) {
		if err != nil {
			return err
		}
		record, err := e.otlp()
		if err != nil {
			return err
		}
		if batch = append(batch, record); len(batch) == otlpBatch {
			if err := write(); err != nil {
				return err
			}
		}
	}
	return write()
}

func (e *told) otlp() (otlpRecord, error) {
	nanos := strconv.FormatInt(e.Time.UnixNano(), 10)
	if e.Time.IsZero() {
		nanos = "0"
	}
	r := otlpRecord{TimeUnixNano: nanos, ObservedTimeUnixNano: nanos, SeverityNumber: otlpInfo, SeverityText: "INFO",
		Body: otlpValue{String: new(e.summary())}, EventName: "statusstore." + e.Kind}
	for _, t := range e.sentences {
		if t.happening.warning {
			r.SeverityNumber, r.SeverityText = otlpWarn, "WARN"
		}
	}
	if e.Status != nil && e.Status.Phase == v1.PodFailed {
		r.SeverityNumber, r.SeverityText = otlpError, "ERROR"
	}
	r.Attributes = append(r.Attributes, otlpNumber("statusstore.sequence", e.Sequence), otlpNumber("statusstore.epoch", e.Epoch), otlpText("statusstore.kind", e.Kind))
	if e.Reason != "" {
		r.Attributes = append(r.Attributes, otlpText("statusstore.reason", string(e.Reason)))
	}
	if e.UID != "" {
		r.Attributes = append(r.Attributes, otlpText("k8s.namespace.name", e.Namespace), otlpText("k8s.pod.name", e.Name), otlpText("k8s.pod.uid", string(e.UID)),
			otlpNumber("statusstore.version", e.Version), otlpNumber("statusstore.incarnation", e.Incarnation))
	}
	if e.Finished {
		r.Attributes = append(r.Attributes, otlpAttribute{"statusstore.finished", otlpValue{Bool: new(true)}})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Attributes)) {
		if e.Attributes[k] != "" {
			r.Attributes = append(r.Attributes, otlpText("statusstore.attribute."+k, e.Attributes[k]))
		}
	}
	if e.Status == nil {
		return r, nil
	}
	status, err := json.Marshal(e.Status)
	if err != nil {
		return r, fmt.Errorf("encode status: %w", err)
	}
	sum := summarise(e.Status)
	ready, _ := condition(e.Status, v1.PodReady)
	r.Attributes = append(r.Attributes, otlpText("k8s.pod.status.phase", sum.phase), otlpAttribute{"statusstore.ready", otlpValue{Bool: new(ready.Status == v1.ConditionTrue)}},
		otlpNumber("statusstore.restarts", sum.restartCount), otlpText("statusstore.status", string(status)))
	return r, nil
}
