// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	contentJSON     = "application/json"
	contentProtobuf = "application/vnd.kubernetes.protobuf"
	contentText     = "text/plain; charset=utf-8"
)

// protoSerializer reads and writes the envelope that Kubernetes puts around
// protobuf messages.
var protoSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// format is how an answer is written.
type format uint8

const (
	formatJSON format = iota
	formatProtobuf
	formatTable // JSON, with kubectl's columns
)

// negotiate picks the best format that the client accepts and the handler can
// write. Without the header the answer is JSON.
func negotiate(r *http.Request, can ...format) (format, error) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return formatJSON, nil
	}
	best, bestQuality := formatJSON, 0.0
	for clause := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, ok := params["q"]; ok {
			if quality, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		f, ok := formatOf(mediaType, params)
		if ok && quality > bestQuality && contains(can, f) {
			best, bestQuality = f, quality
		}
	}
	if bestQuality == 0 {
		return 0, statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"none of the media types in %q can be written; accept %s or %s", header, contentJSON, contentProtobuf)
	}
	return best, nil
}

func formatOf(mediaType string, params map[string]string) (format, bool) {
	as := params["as"]
	switch mediaType {
	case contentJSON, "application/*", "*/*":
		switch {
		case as == "":
			return formatJSON, true
		case as == "Table" && params["g"] == metav1.GroupName && params["v"] == "v1":
			return formatTable, true
		}
	case contentProtobuf:
		return formatProtobuf, as == ""
	}
	return 0, false
}

func contains(can []format, f format) bool {
	for _, c := range can {
		if c == f {
			return true
		}
	}
	return false
}

// encode writes one object. Its kind and apiVersion must be set.
func encode(obj runtime.Object, f format) (data []byte, contentType string, err error) {
	if f == formatProtobuf {
		var b bytes.Buffer
		if err := protoSerializer.Encode(obj, &b); err != nil {
			return nil, "", fmt.Errorf("encode answer: %w", err)
		}
		return b.Bytes(), contentProtobuf, nil
	}
	data, err = json.Marshal(obj)
	if err != nil {
		return nil, "", fmt.Errorf("encode answer: %w", err)
	}
	return append(data, '\n'), contentJSON, nil
}

func writeObject(w http.ResponseWriter, f format, obj runtime.Object) error {
	data, contentType, err := encode(obj, f)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	writeBytes(w, http.StatusOK, contentType, data)
	return nil
}

var (
	podMeta     = metav1.TypeMeta{Kind: "Pod", APIVersion: v1.SchemeGroupVersion.String()}
	podListMeta = metav1.TypeMeta{Kind: "PodList", APIVersion: v1.SchemeGroupVersion.String()}
)
