// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

// TestG9_Errors goes through refused requests: each has its code and reason, in a
// metav1.Status, and changes nothing.
func TestG9_Errors(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", terminated(3)))
	head := s.head()
	const path = "/api/v1/namespaces/default/pods/web-0"
	with := func(edits ...func(*v1.Pod)) string { return jsonOf(t, newPod("web-0", "uid-a", edits...)) }
	call := func(verb string) string { return PathPods + "/uid-a/" + verb }
	tests := []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		reason                   metav1.StatusReason
		says                     string
	}{
		{name: "garbage", method: "PUT", path: path + "/status", body: "}{", code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "trailing garbage", method: "PUT", path: path + "/status", body: with() + "x", code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "empty body", method: "PUT", path: path + "/status", code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "wrong type", method: "PUT", path: path + "/status", body: `{"kind":"Pod","apiVersion":"v1","status":{"phase":5}}`, code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "another kind", method: "PUT", path: path + "/status", body: `{"kind":"Service","apiVersion":"v1"}`, code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "a list", method: "PUT", path: path + "/status", body: `{"kind":"PodList","apiVersion":"v1","items":[]}`, code: 400, reason: metav1.StatusReasonBadRequest},
		{name: "unknown field, strictly", method: "PUT", path: path + "/status?fieldValidation=Strict", body: strings.Replace(with(), `"phase"`, `"phrase"`, 1), code: 400, says: "phrase"},
		{name: "broken protobuf", method: "PUT", path: path + "/status", body: "k8s\x00\xff\xff", headers: []string{"Content-Type", contentProtobuf}, code: 400},
		{name: "no UID", method: "PUT", path: path + "/status", body: with(func(p *v1.Pod) { p.UID = "" }), code: 422, reason: metav1.StatusReasonInvalid, says: "metadata.uid"},
		{name: "bad UID", method: "PUT", path: path + "/status", body: with(func(p *v1.Pod) { p.UID = "a b" }), code: 422, reason: metav1.StatusReasonInvalid, says: "metadata.uid"},
		{name: "other name", method: "PUT", path: path + "/status", body: jsonOf(t, newPod("web-1", "uid-a")), code: 400, says: "web-1"},
		{name: "UID of another pod", method: "PUT", path: strings.Replace(path, "web-0", "web-1", 1) + "/status", body: jsonOf(t, newPod("web-1", "uid-a")), code: 409, reason: metav1.StatusReasonConflict},
		{name: "illegal transition", method: "PUT", path: path + "/status", body: with(), code: 422, reason: metav1.StatusReasonInvalid, says: `"app"`},
		{name: "stale version", method: "PUT", path: path + "/status", body: with(terminated(3), message("x")), headers: []string{"If-Match", "7"}, code: 412, reason: ReasonPreconditionFailed, says: "version 1"},
		{name: "not a version", method: "PUT", path: path + "/status", body: with(), headers: []string{"If-Match", `"x"`}, code: 400},
		{name: "must exist", method: "PUT", path: strings.Replace(path, "web-0", "web-1", 1) + "/status", body: jsonOf(t, newPod("web-1", "uid-b")), headers: []string{"If-Match", "*"}, code: 412},
		{name: "text", method: "PUT", path: path + "/status", body: with(), headers: []string{"Content-Type", "text/plain"}, code: 415, reason: metav1.StatusReasonUnsupportedMediaType},
		{name: "compressed", method: "PUT", path: path + "/status", body: with(), headers: []string{"Content-Encoding", "gzip"}, code: 415},
		{name: "dry run", method: "PUT", path: path + "/status?dryRun=All", body: with(terminated(3), message("x")), code: 400},
		{name: "unacceptable", method: "PUT", path: path + "/status", body: with(terminated(3), message("x")), headers: []string{"Accept", "text/html"}, code: 406, reason: metav1.StatusReasonNotAcceptable},
		{name: "apply", method: "PATCH", path: path + "/status", body: "{}", headers: []string{"Content-Type", "application/apply-patch+yaml"}, code: 415},
		{name: "broken patch", method: "PATCH", path: path + "/status", body: "[", headers: []string{"Content-Type", "application/json-patch+json"}, code: 400},
		{name: "failed test", method: "PATCH", path: path + "/status", body: `[{"op":"test","path":"/status/phase","value":"Failed"}]`, headers: []string{"Content-Type", "application/json-patch+json"}, code: 422},
		{name: "patch of a stranger", method: "PATCH", path: strings.Replace(path, "web-0", "web-1", 1) + "/status", body: `{"status":{}}`, headers: []string{"Content-Type", "application/merge-patch+json"}, code: 404, reason: metav1.StatusReasonNotFound},
		{name: "patch of another UID", method: "PATCH", path: path + "/status", body: `{"metadata":{"uid":"uid-x"},"status":{}}`, headers: []string{"Content-Type", "application/merge-patch+json"}, code: 409, reason: metav1.StatusReasonConflict},
		{name: "patch that is no pod", method: "PATCH", path: path + "/status", body: `{"status":{"phase":{}}}`, headers: []string{"Content-Type", "application/merge-patch+json"}, code: 422},
		{name: "delete", method: "DELETE", path: path, code: 405, reason: metav1.StatusReasonMethodNotAllowed},
		{name: "create", method: "POST", path: "/api/v1/namespaces/default/pods", body: with(), code: 405},
		{name: "unknown pod", method: "GET", path: "/api/v1/namespaces/default/pods/web-9", code: 404, reason: metav1.StatusReasonNotFound, says: "web-9"},
		{name: "unknown path", method: "GET", path: "/openapi/v2", code: 404, reason: metav1.StatusReasonNotFound},
		{name: "label selector", method: "GET", path: "/api/v1/pods?labelSelector=a%3D%3D%3D", code: 400},
		{name: "field selector", method: "GET", path: "/api/v1/pods?fieldSelector=spec.x%3D1", code: 400, says: "spec.x"},
		{name: "resourceVersion", method: "GET", path: "/api/v1/pods?resourceVersion=x", code: 400},
		{name: "resourceVersion beyond the end", method: "GET", path: "/api/v1/pods?resourceVersion=99", code: 410, reason: metav1.StatusReasonExpired},
		{name: "watch beyond the end", method: "GET", path: "/api/v1/pods?watch=1&resourceVersion=99", code: 410, reason: metav1.StatusReasonExpired},
		{name: "continue token", method: "GET", path: "/api/v1/pods?continue=x", code: 400},
		{name: "follow", method: "GET", path: PathEvents + "?follow=maybe", code: 400, says: "follow: want true or false"},
		{name: "limit of a history", method: "GET", path: PathPods + "/uid-a/history?limit=-1", code: 400, says: "limit"},
		{name: "readiness of an unknown pod", method: "POST", path: PathPods + "/uid-x/readiness", body: `{"containerID":"containerd://c1","ready":true}`, code: 404, reason: metav1.StatusReasonNotFound, says: "unknown pod"},
		{name: "readiness of an unknown container", method: "POST", path: call("readiness"), body: `{"containerID":"containerd://c9","ready":true}`, code: 404, reason: metav1.StatusReasonNotFound, says: "container"},
		{name: "readiness without value", method: "POST", path: call("readiness"), body: `{"containerID":"containerd://c1"}`, code: 400, says: "ready"},
		{name: "readiness without container", method: "POST", path: call("readiness"), body: `{"ready":true}`, code: 400, says: "containerID"},
		{name: "readiness with more", method: "POST", path: call("readiness"), body: `{"containerID":"containerd://c1","ready":true,"x":1}`, code: 400},
		{name: "readiness and more", method: "POST", path: call("readiness"), body: `{"containerID":"containerd://c1","ready":true} {}`, code: 400},
		{name: "startup without value", method: "POST", path: call("startup"), body: `{"containerID":"containerd://c1"}`, code: 400, says: "started"},
		{name: "readiness by GET", method: "GET", path: call("readiness"), code: 405},
		{name: "terminate an unknown pod", method: "POST", path: PathPods + "/uid-x/terminate", code: 404, reason: metav1.StatusReasonNotFound},
		{name: "terminate with a body", method: "POST", path: call("terminate"), body: `{"pod":1}`, code: 400},
		{name: "finish an unknown pod", method: "POST", path: PathPods + "/uid-x/finished", code: 404},
		{name: "history of an unknown pod", method: "GET", path: PathPods + "/uid-x/history", code: 404},
		{name: "retain without a list", method: "POST", path: PathRetain, body: `{}`, code: 400, says: "uids"},
		{name: "retain null", method: "POST", path: PathRetain, body: `{"uids":null}`, code: 400, says: "uids"},
		{name: "retain nothing named", method: "POST", path: PathRetain, body: `{"uids":[""]}`, code: 400},
		{name: "events beyond the end", method: "GET", path: PathEvents + "?from=99", code: 410},
		{name: "events from nowhere", method: "GET", path: PathEvents + "?from=x", code: 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := s.do(tt.method, tt.path, tt.body, tt.headers...)
			var status metav1.Status
			r.into(t, tt.code, &status)
			if status.Kind != "Status" || status.APIVersion != "v1" || status.Status != metav1.StatusFailure || int(status.Code) != tt.code {
				t.Errorf("not a proper Status: %s", r.body)
			}
			if status.Reason == "" || tt.reason != "" && status.Reason != tt.reason {
				t.Errorf("got reason %q, want %q", status.Reason, tt.reason)
			}
			if !strings.Contains(status.Message, tt.says) {
				t.Errorf("got message %q, want it to contain %q", status.Message, tt.says)
			}
		})
	}
	e, ok := s.manager.Entry("uid-a")
	if !ok || e.Version != 1 || len(s.manager.Entries()) != 1 {
		t.Errorf("something was stored: %+v", e)
	}
	s.wantHead(head + 1) // the record of the illegal transition
}

func TestStatusOf(t *testing.T) {
	full := fmt.Errorf("append: %w: %w", journal.ErrDegraded, syscall.ENOSPC)
	tests := []struct {
		name   string
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{"disk full", full, http.StatusInsufficientStorage, ReasonInsufficientStorage},
		{"quota", fmt.Errorf("%w: %w", journal.ErrDegraded, syscall.EDQUOT), http.StatusInsufficientStorage, ReasonInsufficientStorage},
		{"disk fails", fmt.Errorf("%w: %w", journal.ErrDegraded, syscall.EIO), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{"closed", manager.ErrClosed, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{"too large", journal.ErrTooLarge, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge},
		{"no status", manager.ErrNoStatus, http.StatusNotFound, metav1.StatusReasonNotFound},
		{"slow disk", fmt.Errorf("wait: %w", errSlowDisk), http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{"deadline", context.DeadlineExceeded, http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		{"transition", fmt.Errorf("x: %w", &podstatus.TransitionError{Container: "app", Reason: "r"}), http.StatusUnprocessableEntity, metav1.StatusReasonInvalid},
		{"other", errors.New("x"), http.StatusInternalServerError, metav1.StatusReasonInternalError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := statusOf(fmt.Errorf("outer: %w", tt.err))
			if got.Code != tt.code || got.Reason != tt.reason {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Reason, tt.code, tt.reason)
			}
		})
	}
	if got := statusOf(full); !strings.Contains(got.Message, "no space") || got.Details.RetryAfterSeconds == 0 {
		t.Errorf("C45: got %+v, want the cause in words and a time to wait", got)
	}
}

func TestReadOnly(t *testing.T) {
	s := newStore(t, func(_ *manager.Options, o *Options) { o.ReadOnly = "only for reading" })
	for _, path := range []string{"/api/v1/namespaces/default/pods/web-0/status", PathRetain} {
		for _, method := range []string{http.MethodPut, http.MethodPost} {
			s.do(method, path, jsonOf(t, newPod("web-0", "uid-a"))).into(t, http.StatusMethodNotAllowed, nil)
		}
	}
	s.do(http.MethodGet, "/api/v1/pods", "").into(t, http.StatusOK, nil)
	s.wantHead(1)
}
