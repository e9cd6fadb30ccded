// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

const (
	// patchAttempts bounds how often a patch is computed anew because the status
	// changed in between.
	patchAttempts = 10
	// maxPatchOperations bounds a JSON patch, maxCopied what its copies add up to.
	maxPatchOperations = 1000
	maxCopied          = 3 << 20
)

// PATCH /api/v1/namespaces/{ns}/pods/{name}/status
//
// Only the status is patched. The body may also be a whole pod, which then needs
// not be stored yet.
func (a *api) patchStatus(w http.ResponseWriter, r *http.Request) error {
	call, err := parseWrite(r)
	if err != nil {
		return err
	}
	mediaType, err := contentType(r)
	if err != nil {
		return err
	}
	merge, err := patcher(types.PatchType(mediaType))
	if err != nil {
		return err
	}
	data, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	if err := checkDepth(data); err != nil {
		return err
	}
	about := aboutPatch(types.PatchType(mediaType), data)
	if about.Kind == podMeta.Kind && about.Metadata.UID != "" {
		if err := a.checkLive(r.PathValue("ns"), r.PathValue("name"), about.identity()); err != nil {
			return err
		}
	}
	for attempt := 1; ; attempt++ {
		base, err := a.patchBase(r, about)
		if err != nil {
			return err
		}
		pod, err := base.patch(w, r, call.validation, func(document []byte) ([]byte, error) { return merge(document, data) })
		if err != nil {
			return err
		}
		once := call
		if once.expected == nil {
			once.expected = &base.version
		}
		err = a.store(w, r, once, pod)
		if call.expected == nil && attempt < patchAttempts && errors.Is(err, manager.ErrVersionConflict) {
			continue // somebody was faster: patch what they stored
		}
		return err
	}
}

// patchTarget is what the body of a merge patch says about its pod.
type patchTarget struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
}

func (p patchTarget) identity() identity {
	pod := v1.Pod{ObjectMeta: p.Metadata}
	return identity{pod.UID, pod.CreationTimestamp, podstatus.IsStatic(&pod)}
}

func aboutPatch(t types.PatchType, data []byte) patchTarget {
	var p patchTarget
	if t != types.JSONPatchType {
		_ = json.Unmarshal(data, &p) // the patch itself will tell what is wrong
	}
	return p
}

// patchBase is what a patch applies to.
type patchBase struct {
	pod     *v1.Pod // nil: nothing is known, the body is the pod
	given   types.UID
	version journal.Version
}

// patchBase finds the pod by the UID in the body, else by the name.
func (a *api) patchBase(r *http.Request, about patchTarget) (patchBase, error) {
	namespace, name := r.PathValue("ns"), r.PathValue("name")
	b := patchBase{given: about.Metadata.UID}
	if b.given != "" {
		if e, ok := a.m.Entry(b.given); ok {
			b.pod, b.version = a.podOf(e), e.Version
		} else if pod, ok := a.m.Pod(b.given); ok {
			b.pod = pod
		}
		if b.pod != nil && (b.pod.Namespace != namespace || b.pod.Name != name) {
			return b, apierrors.NewConflict(podResource, name, fmt.Errorf("the UID %s belongs to %s/%s", b.given, b.pod.Namespace, b.pod.Name))
		}
		if b.pod != nil || about.Kind == podMeta.Kind {
			return b, nil
		}
	}
	entries := a.m.EntriesByName(namespace, name)
	switch {
	case len(entries) == 0:
		return b, apierrors.NewNotFound(podResource, name)
	case b.given != "":
		return b, otherUID(name, entries[0].UID, b.given)
	}
	b.pod, b.version = a.podOf(entries[0]), entries[0].Version
	return b, nil
}

func otherUID(name string, stored, given types.UID) error {
	return apierrors.NewConflict(podResource, name, fmt.Errorf("the stored pod has the UID %s, not %s", stored, given))
}

// patch returns the pod with the patched status.
func (b patchBase) patch(w http.ResponseWriter, r *http.Request, v validation, merge func([]byte) ([]byte, error)) (*v1.Pod, error) {
	document := []byte(`{"kind":"Pod","apiVersion":"v1"}`)
	if b.pod != nil {
		b.pod.TypeMeta = podMeta
		var err error
		if document, err = json.Marshal(b.pod); err != nil {
			return nil, fmt.Errorf("encode pod: %w", err)
		}
	}
	patched, err := merge(document)
	if err != nil {
		return nil, err
	}
	pod, err := decodePod(w, patched, contentJSON, v)
	if err != nil {
		return nil, statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the patch does not make a pod: %v", err)
	}
	if err := checkPathNames(r, pod); err != nil {
		return nil, err
	}
	switch {
	case pod.UID == "":
		return nil, invalid(pod.Name, "metadata.uid", "is required")
	case b.pod == nil:
		return pod, nil
	case pod.UID != b.pod.UID && pod.UID != b.given: // given may be the mirror's
		return nil, otherUID(pod.Name, b.pod.UID, pod.UID)
	}
	b.pod.Status = pod.Status
	return b.pod, nil
}

// patcher returns the function that applies patches of a media type.
func patcher(t types.PatchType) (func(document, patch []byte) ([]byte, error), error) {
	switch t {
	case types.StrategicMergePatchType:
		return func(document, patch []byte) ([]byte, error) {
			patched, err := strategicpatch.StrategicMergePatch(document, patch, v1.Pod{})
			return patched, patchError(err, errors.Is(err, mergepatch.ErrBadJSONDoc))
		}, nil
	case types.MergePatchType, contentJSON, "": // the last two: a whole pod
		return func(document, patch []byte) ([]byte, error) {
			patched, err := jsonpatch.MergePatch(document, patch)
			return patched, patchError(err, errors.Is(err, jsonpatch.ErrBadJSONPatch))
		}, nil
	case types.JSONPatchType:
		return applyJSONPatch, nil
	default:
		return nil, unsupportedMediaType(string(t), fmt.Sprintf("%s, %s or %s",
			types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType))
	}
}

func patchError(err error, malformed bool) error {
	switch {
	case err == nil:
		return nil
	case malformed:
		return badRequest("decode patch: %v", err)
	default:
		return statusError(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "apply patch: %v", err)
	}
}

// limitCopies sets the one limit that the library has as a package variable.
// Without it a small patch that copies a value into itself over and over makes a
// document of any size.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopied })

func applyJSONPatch(document, patch []byte) ([]byte, error) {
	limitCopies()
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, patchError(err, true)
	}
	if len(operations) > maxPatchOperations {
		return nil, tooLarge("a patch may have %d operations, this one has %d", maxPatchOperations, len(operations))
	}
	patched, err := operations.Apply(document)
	return patched, patchError(err, false)
}
