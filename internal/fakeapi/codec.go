// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mediaTypes are JSON (first, hence the default), YAML and Kubernetes protobuf.
var mediaTypes = newMediaTypes()

func newMediaTypes() []runtime.SerializerInfo {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("register API types: %v", err)) // impossible: types are fixed at compile time
		}
	}
	// Deletion options come in either group.
	scheme.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.DeleteOptions{})
	return serializer.NewCodecFactory(scheme).SupportedMediaTypes()
}

// accept is one alternative of an Accept header.
type accept struct {
	mediaType string
	quality   float64
}

// negotiate picks the representation that the client likes best. With stream
// only those that can frame a sequence of objects count.
func negotiate(header string, stream bool) (runtime.SerializerInfo, bool) {
	if strings.TrimSpace(header) == "" {
		return mediaTypes[0], true
	}
	best, found, quality := runtime.SerializerInfo{}, false, 0.0
	for _, wanted := range parseAccept(header) {
		for _, info := range mediaTypes {
			if stream && info.StreamSerializer == nil {
				continue
			}
			matches := wanted.mediaType == info.MediaType || wanted.mediaType == "*/*" ||
				wanted.mediaType == info.MediaTypeType+"/*"
			// Equal quality: the first one named wins, as clients expect.
			if matches && wanted.quality > quality {
				best, found, quality = info, true, wanted.quality
			}
		}
	}
	return best, found
}

func parseAccept(header string) []accept {
	var all []accept
	for part := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		// "as" asks for another kind of object, such as a table.
		if err != nil || params["as"] != "" {
			continue
		}
		quality := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
		all = append(all, accept{mediaType, quality})
	}
	return all
}

func acceptable() string {
	names := make([]string, len(mediaTypes))
	for i, info := range mediaTypes {
		names[i] = info.MediaType
	}
	return strings.Join(names, ", ")
}

func errNotAcceptable() error {
	return statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"none of the accepted media types is offered; there are: "+acceptable())
}

func errUnsupportedMediaType(offered string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body is in an unknown format; known are: "+offered)
}

// decode reads body as an object of the given kind. Unknown fields are an error
// if strict says so, else ignored.
func decode(body []byte, contentType string, kind schema.GroupVersionKind, into runtime.Object, strict bool) (runtime.Object, error) {
	if contentType == "" {
		contentType = runtime.ContentTypeJSON
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, errUnsupportedMediaType(acceptable())
	}
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, mediaType)
	if !ok || info.MediaType != mediaType {
		return nil, errUnsupportedMediaType(acceptable())
	}
	decoder := info.Serializer
	if strict {
		decoder = info.StrictSerializer
	}
	obj, _, err := decoder.Decode(body, &kind, into)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is not a %s: %v", kind.Kind, err))
	}
	return obj, nil
}

func decodePod(body []byte, contentType string, strict bool) (*corev1.Pod, error) {
	obj, err := decode(body, contentType, podKind, nil, strict)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a %s cannot be handled as a Pod", obj.GetObjectKind().GroupVersionKind().Kind))
	}
	setDefaults(pod)
	return pod, nil
}

func decodeDeleteOptions(body []byte, contentType string) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	kind := corev1.SchemeGroupVersion.WithKind("DeleteOptions")
	obj, err := decode(body, contentType, kind, options, false)
	if err != nil {
		return nil, err
	}
	if obj != runtime.Object(options) {
		return nil, apierrors.NewBadRequest("the body is not DeleteOptions")
	}
	return options, nil
}

// wire returns pod as it would be after a way over the network: times without
// fractions, no empty lists. It also is a copy.
func wire(pod *corev1.Pod) (*corev1.Pod, error) {
	var buf bytes.Buffer
	pod = pod.DeepCopy()
	pod.TypeMeta.SetGroupVersionKind(podKind)
	if err := mediaTypes[0].Serializer.Encode(pod, &buf); err != nil {
		return nil, fmt.Errorf("encode pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return decodePod(buf.Bytes(), runtime.ContentTypeJSON, false)
}

func errPatchResult(name string, err error) error {
	return errInvalid(name, field.ErrorList{field.Invalid(field.NewPath("patch"), "", err.Error())})
}
