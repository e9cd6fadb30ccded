// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// PUT /api/v1/namespaces/{ns}/pods/{name}/status
func (a *api) putStatus(w http.ResponseWriter, r *http.Request) error {
	call, err := parseWrite(r)
	if err != nil {
		return err
	}
	mediaType, err := contentType(r)
	if err != nil {
		return err
	}
	switch mediaType {
	case "", contentJSON, contentProtobuf:
	default:
		return unsupportedMediaType(mediaType, contentJSON+" or "+contentProtobuf)
	}
	data, err := a.readBody(w, r)
	if err != nil {
		return err
	}
	pod, err := decodePod(w, data, mediaType, call.validation)
	if err != nil {
		return err
	}
	if err := checkPathNames(r, pod); err != nil {
		return err
	}
	if pod.UID == "" {
		return invalid(pod.Name, "metadata.uid", "is required")
	}
	if err := a.checkLive(pod.Namespace, pod.Name, identity{pod.UID, pod.CreationTimestamp, podstatus.IsStatic(pod)}); err != nil {
		return err
	}
	if call.exact {
		if call.expected, err = a.versionOf(pod); err != nil {
			return err
		}
	}
	err = a.store(w, r, call, pod)
	if call.exact && errors.Is(err, manager.ErrVersionConflict) {
		return changedMeanwhile(pod)
	}
	return err
}

// versionOf is the version that the pod's resourceVersion stands for, if it is
// the stored one. Pods mostly come from the API server, whose resourceVersions look
// the same and mean nothing here: so only a request that says so is about ours.
func (a *api) versionOf(pod *v1.Pod) (*journal.Version, error) {
	n, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return nil, badRequest("resourceVersionMatch=Exact: metadata.resourceVersion %q is not one of this interface", pod.ResourceVersion)
	}
	e, ok := a.m.Entry(pod.UID)
	if !ok {
		return nil, apierrors.NewNotFound(podResource, pod.Name)
	}
	if e.Sequence != journal.Sequence(n) {
		return nil, changedMeanwhile(pod)
	}
	return &e.Version, nil
}

// changedMeanwhile is what client-go's retry.RetryOnConflict looks for.
func changedMeanwhile(pod *v1.Pod) error {
	return apierrors.NewConflict(podResource, pod.Name, fmt.Errorf("the pod has changed since resourceVersion %s; read it again", pod.ResourceVersion))
}

// write is what a request to set a status says beside its body.
type write struct {
	format     format
	validation validation
	expected   *journal.Version // If-Match
	exists     bool             // If-Match: *
	exact      bool             // the body's resourceVersion counts
}

func parseWrite(r *http.Request) (write, error) {
	var c write
	var err error
	if c.format, err = negotiate(r, formatJSON, formatProtobuf, formatTable); err != nil {
		return c, err
	}
	if c.validation, err = fieldValidation(r); err != nil {
		return c, err
	}
	if r.URL.Query().Has("dryRun") {
		return c, badRequest("dryRun is not supported: nothing was stored")
	}
	switch match := r.URL.Query().Get("resourceVersionMatch"); {
	case match == "":
	case match != string(metav1.ResourceVersionMatchExact):
		return c, badRequest("resourceVersionMatch=%q: want Exact", match)
	case r.Method != http.MethodPut:
		return c, badRequest("resourceVersionMatch is for PUT; use If-Match")
	case len(r.Header.Values("If-Match")) > 0:
		return c, badRequest("resourceVersionMatch and If-Match exclude each other")
	default:
		c.exact = true
	}
	match := strings.TrimSpace(r.Header.Get("If-Match"))
	switch match {
	case "":
		if len(r.Header.Values("If-Match")) > 0 {
			return c, badRequest("If-Match is empty")
		}
	case "*":
		c.exists = true
	default:
		number := match
		if len(match) > 1 && match[0] == '"' && match[len(match)-1] == '"' {
			number = match[1 : len(match)-1]
		}
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return c, badRequest("If-Match %q is not a version", match)
		}
		c.expected = new(journal.Version(n))
	}
	return c, nil
}

// checkPathNames wants a body to be about the pod in the path, and fills in what
// it leaves out.
func checkPathNames(r *http.Request, pod *v1.Pod) error {
	for _, n := range []struct {
		what, path string
		body       *string
	}{{"namespace", r.PathValue("ns"), &pod.Namespace}, {"name", r.PathValue("name"), &pod.Name}} {
		if *n.body == "" {
			*n.body = n.path
		}
		if *n.body != n.path {
			return badRequest("the %s of the pod (%s) is not the one in the path (%s)", n.what, *n.body, n.path)
		}
	}
	return nil
}

// store sets the status and answers with the stored pod.
func (a *api) store(w http.ResponseWriter, r *http.Request, c write, pod *v1.Pod) error {
	if err := checkStatus(pod); err != nil {
		return err
	}
	if c.exists {
		if _, ok := a.m.Entry(pod.UID); !ok {
			return statusError(http.StatusPreconditionFailed, ReasonPreconditionFailed, "pod %s/%s has no status yet", pod.Namespace, pod.Name)
		}
	}
	if len(pod.Spec.Containers) == 0 {
		// The status alone: what is known of the pod decides about its containers.
		if known, ok := a.m.Pod(pod.UID); ok {
			known.Status, known.Namespace, known.Name = pod.Status, pod.Namespace, pod.Name
			pod = known
		}
	}
	pod.TypeMeta = metav1.TypeMeta{}
	// The body's status is the new one. The manager takes what comes with the pod
	// for the previous one, as the server has it (SEMANTICS 8).
	status := pod.Status
	pod.Status = a.liveStatus(pod.UID)
	var change manager.Change
	err := a.commit(r, func(ctx context.Context) (bool, error) {
		var err error
		if c.expected != nil {
			change, err = a.m.SetPodStatusIf(ctx, pod, status, *c.expected)
		} else {
			change, err = a.m.SetPodStatus(ctx, pod, status)
		}
		return change.Changed, err
	})
	if err != nil {
		return err
	}
	return a.writePod(w, r, c.format, a.stored(change, pod))
}

// liveStatus is the server's status of a pod that has none stored; empty if the
// server has not shown the pod.
func (a *api) liveStatus(uid types.UID) v1.PodStatus {
	if _, stored := a.m.Entry(uid); !stored {
		if known, ok := a.m.Pod(uid); ok {
			return known.Status
		}
	}
	return v1.PodStatus{}
}

// stored is the entry that a change made. If a newer one has taken its place
// already, it is put together: the answer must be about this request.
func (a *api) stored(c manager.Change, pod *v1.Pod) *projection.Entry {
	e, ok := a.m.Entry(c.UID)
	if ok && e.Version == c.Version {
		return e
	}
	made := &projection.Entry{
		UID: c.UID, Namespace: pod.Namespace, Name: pod.Name,
		Version: c.Version, Sequence: c.Sequence, Status: c.Status(),
	}
	if ok {
		made.Acked = min(e.Acked, c.Version)
	}
	return made
}
