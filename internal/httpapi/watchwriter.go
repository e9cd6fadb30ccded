// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watchWriter writes the events of a watch in the client's format.
type watchWriter struct {
	w      http.ResponseWriter
	o      listOptions
	format format
	rows   bool // a table was sent: its columns are known
}

func newWatchWriter(w http.ResponseWriter, o listOptions, f format) (*watchWriter, error) {
	contentType := contentJSON
	if f == formatProtobuf {
		contentType = contentProtobuf + ";stream=watch"
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	return &watchWriter{w: w, o: o, format: f}, nil
}

func (s *watchWriter) send(kind watch.EventType, obj runtime.Object) error {
	data, err := s.line(kind, obj)
	if err != nil {
		return err
	}
	_, err = s.w.Write(data)
	return err
}

// sendShared is send for a pod that other watches may have sent already. Tables
// differ from one watch to the next.
func (s *watchWriter) sendShared(kind watch.EventType, pod *v1.Pod, shared *sharedEvent) error {
	if s.format == formatTable {
		return s.send(kind, pod)
	}
	data, err := shared.lineOr(sharedForm{kind, s.format}, func() ([]byte, error) { return s.line(kind, pod) })
	if err != nil {
		return err
	}
	_, err = s.w.Write(data)
	return err
}

// line is one event in the client's format.
func (s *watchWriter) line(kind watch.EventType, obj runtime.Object) ([]byte, error) {
	if pod, ok := obj.(*v1.Pod); ok && s.format == formatTable {
		obj = s.table(kind, pod)
	}
	data, _, err := encode(obj, s.format)
	if err != nil {
		return nil, err
	}
	if s.format == formatProtobuf {
		return frame(kind, data)
	}
	line, err := json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}{kind, data})
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return append(line, '\n'), nil
}

// frame is a protobuf event behind its length.
func frame(kind watch.EventType, object []byte) ([]byte, error) {
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: object}}
	data, err := event.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), nil
}

// table is a table with one row; only the first one has column definitions.
func (s *watchWriter) table(kind watch.EventType, pod *v1.Pod) *metav1.Table {
	t := newTable(pod.ResourceVersion, s.o)
	if kind == watch.Bookmark {
		t.addBare(pod)
	} else {
		t.add(pod)
	}
	if s.rows {
		t.ColumnDefinitions = nil
	}
	s.rows = true
	return t.Table
}
