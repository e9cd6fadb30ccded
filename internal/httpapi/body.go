// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// strictSerializer reads a whole object even if fields are unknown or duplicate,
// and names those. Nesting is bounded by the JSON package below it.
var strictSerializer = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{Strict: true})

// readBody reads a body within the limits of size and time.
func (a *api) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the content encoding %q is not supported", e)
	}
	if r.ContentLength > a.MaxBodyBytes {
		w.Header().Set("Connection", "close") // rather than read it to its end
		return nil, tooLarge("the body has %d bytes, at most %d are allowed", r.ContentLength, a.MaxBodyBytes)
	}
	control := http.NewResponseController(w)
	// The deadline must not stay: it would end a watch that comes next.
	_ = control.SetReadDeadline(time.Now().Add(a.ReadTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.MaxBodyBytes))
	if err == nil {
		return data, nil
	}
	w.Header().Set("Connection", "close")
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, tooLarge("the body has more than %d bytes", a.MaxBodyBytes)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return nil, statusError(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the body did not arrive within %v", a.ReadTimeout)
	}
	return nil, badRequest("read body: %v", err)
}

// readJSON reads the body of one of our own calls.
func (a *api) readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	mediaType, err := contentType(r)
	if err != nil {
		return err
	}
	if mediaType != "" && mediaType != contentJSON {
		return unsupportedMediaType(mediaType, contentJSON)
	}
	data, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	if err := checkDepth(data); err != nil {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return badRequest("decode body: %s: want %s, got a %s", cmp.Or(bad.Field, "the body"), kindText(bad.Type), bad.Value)
		}
		return badRequest("decode body: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("decode body: there is more after the JSON value")
	}
	return nil
}

// kindText is what a value of a type looks like in JSON.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

// contentType returns the media type of the body, "" if the header is missing.
func contentType(r *http.Request) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return "", nil
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return "", unsupportedMediaType(header, contentJSON)
	}
	return mediaType, nil
}

// validation is what fieldValidation asks for.
type validation struct{ strict, warn bool }

func fieldValidation(r *http.Request) (validation, error) {
	switch v := r.URL.Query().Get("fieldValidation"); v {
	case "Strict":
		return validation{strict: true}, nil
	case "", "Warn":
		return validation{warn: true}, nil
	case "Ignore":
		return validation{}, nil
	default:
		return validation{}, badRequest("fieldValidation %q is none of Strict, Warn and Ignore", v)
	}
}

// decodePod reads a v1.Pod. What it says about its kind must be right.
func decodePod(w http.ResponseWriter, data []byte, mediaType string, v validation) (*v1.Pod, error) {
	var into v1.Pod
	gvk := v1.SchemeGroupVersion.WithKind("Pod")
	var obj runtime.Object
	var err error
	if mediaType == contentProtobuf {
		obj, _, err = protoSerializer.Decode(data, &gvk, &into)
	} else {
		if err := checkDepth(data); err != nil {
			return nil, err
		}
		obj, _, err = strictSerializer.Decode(data, &gvk, &into)
	}
	if runtime.IsStrictDecodingError(err) {
		if v.strict {
			return nil, badRequest("decode pod: %v", err)
		}
		if v.warn {
			w.Header().Set("Warning", warning(err.Error()))
		}
		err = nil
	}
	if err != nil {
		return nil, badRequest("decode pod: %v", err)
	}
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return nil, badRequest("the body is a %T, not a v1 Pod", obj)
	}
	pod.TypeMeta = podMeta
	return pod, nil
}

// warning is the value of a Warning header, in the form that client-go prints.
func warning(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) > 512 {
		text = strings.ToValidUTF8(text[:512], "") + "…"
	}
	return `299 - "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
