// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watchWriter writes the events of a watch in the client's format. What it holds
// back is sent by flush.
type watchWriter struct {
	w      http.ResponseWriter
	o      listOptions
	format format
	rows   bool // a table was sent: its columns are known
	buffer *bytes.Buffer
}

// watchBuffers are used by the watches that are sending right now.
var watchBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newWatchWriter(w http.ResponseWriter, o listOptions, f format) *watchWriter {
	contentType := contentJSON
	if f == formatProtobuf {
		contentType = contentProtobuf + ";stream=watch"
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	return &watchWriter{w: w, o: o, format: f}
}

// write holds data back until there is enough of it.
func (s *watchWriter) write(data []byte) error {
	if s.buffer == nil {
		s.buffer = watchBuffers.Get().(*bytes.Buffer)
	}
	s.buffer.Write(data)
	if s.buffer.Len() < writePiece {
		return nil
	}
	return s.drain()
}

func (s *watchWriter) drain() error {
	if s.buffer == nil {
		return nil
	}
	_, err := s.w.Write(s.buffer.Bytes())
	s.buffer.Reset()
	if s.buffer.Cap() <= 4*writePiece {
		watchBuffers.Put(s.buffer)
	}
	s.buffer = nil
	return err
}

// flush sends what was held back.
func (s *watchWriter) flush() error { return errors.Join(s.drain(), flush(s.w)) }

func (s *watchWriter) send(kind watch.EventType, obj runtime.Object) error {
	data, err := s.line(kind, obj)
	if err != nil {
		return err
	}
	return s.write(data)
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
	return s.write(data)
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
