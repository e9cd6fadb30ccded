// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

const maxPatchOperations = 10_000 // as in a real server

func (c *call) patch() error {
	mediaType, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	apply, err := newPatch(types.PatchType(mediaType), c.body)
	if err != nil {
		return err
	}
	return c.write(func(old *corev1.Pod) (*corev1.Pod, error) {
		var document bytes.Buffer
		if err := mediaTypes[0].Serializer.Encode(old, &document); err != nil {
			return nil, fmt.Errorf("encode pod %s/%s: %w", old.Namespace, old.Name, err)
		}
		patched, err := apply(document.Bytes())
		if err != nil {
			return nil, err
		}
		pod, err := decodePod(patched, runtime.ContentTypeJSON, c.strict())
		if err != nil {
			return nil, errPatchResult(old.Name, err)
		}
		return pod, c.checkName(pod)
	})
}

// newPatch returns a function that applies the patch to a JSON document.
func newPatch(patchType types.PatchType, patch []byte) (func([]byte) ([]byte, error), error) {
	switch patchType {
	case types.StrategicMergePatchType:
		return func(document []byte) ([]byte, error) {
			patched, err := strategicpatch.StrategicMergePatch(document, patch, corev1.Pod{})
			if errors.Is(err, mergepatch.ErrBadJSONDoc) {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return patched, err
		}, nil
	case types.MergePatchType:
		return func(document []byte) ([]byte, error) {
			patched, err := jsonpatch.MergePatch(document, patch)
			if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return patched, err
		}, nil
	case types.JSONPatchType:
		return newJSONPatch(patch)
	default:
		return nil, errUnsupportedMediaType(fmt.Sprintf("%s, %s, %s",
			types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType))
	}
}

func newJSONPatch(patch []byte) (func([]byte) ([]byte, error), error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("a patch may have %d operations, this one has %d", maxPatchOperations, len(operations)))
	}
	return func(document []byte) ([]byte, error) {
		patched, err := operations.Apply(document)
		if err != nil {
			return nil, statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
		}
		return patched, nil
	}, nil
}
