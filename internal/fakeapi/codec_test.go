// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNegotiate(t *testing.T) {
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, c := range []struct {
		accept string
		stream bool
		want   string // empty: none
	}{
		{accept: "", want: "application/json"},
		{accept: "*/*", want: "application/json"},
		{accept: "application/*", want: "application/json"},
		{accept: "application/json", want: "application/json"},
		{accept: protobuf + ",application/json", want: protobuf},
		{accept: protobuf + ";stream=watch,application/json", stream: true, want: protobuf},
		{accept: "application/json;q=0.5," + protobuf, want: protobuf},
		{accept: "application/yaml", want: "application/yaml"},
		{accept: "application/yaml", stream: true},
		{accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", want: "application/json"},
		{accept: "application/json;as=Table;v=v1;g=meta.k8s.io"},
		{accept: "application/cbor"},
		{accept: "text/html, nonsense/"},
	} {
		info, ok := negotiate(c.accept, c.stream)
		if ok != (c.want != "") || info.MediaType != c.want {
			t.Errorf("accept %q (stream %v): %q, want %q", c.accept, c.stream, info.MediaType, c.want)
		}
	}
}

func TestHandler_Refusals(t *testing.T) {
	server, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, server, newPod("a"))
	const pods = "/api/v1/namespaces/default/pods"
	for _, c := range []struct {
		name, method, path, contentType, accept, body string
		code                                          int
		reason                                        metav1.StatusReason
	}{
		{"other resource", "GET", "/api/v1/nodes", "", "", "", 404, metav1.StatusReasonNotFound},
		{"other group", "GET", "/apis/apps/v1/deployments", "", "", "", 404, metav1.StatusReasonNotFound},
		{"other subresource", "GET", pods + "/a/log", "", "", "", 404, metav1.StatusReasonNotFound},
		{"named without namespace", "GET", "/api/v1/pods/a", "", "", "", 404, metav1.StatusReasonNotFound},
		{"create without namespace", "POST", "/api/v1/pods", "", "", "{}", 405, metav1.StatusReasonMethodNotAllowed},
		{"delete status", "DELETE", pods + "/a/status", "", "", "", 405, metav1.StatusReasonMethodNotAllowed},
		{"put collection", "PUT", pods, "", "", "{}", 405, metav1.StatusReasonMethodNotAllowed},
		{"not acceptable", "GET", pods + "/a", "", "text/html", "", 406, metav1.StatusReasonNotAcceptable},
		{"unknown media type", "POST", pods, "text/plain", "", "{}", 415, metav1.StatusReasonUnsupportedMediaType},
		{"server-side apply", "PATCH", pods + "/a", "application/apply-patch+yaml", "", "{}", 415, metav1.StatusReasonUnsupportedMediaType},
		{"not a pod", "POST", pods, "application/json", "", `{"kind":"Node","apiVersion":"v1"}`, 400, metav1.StatusReasonBadRequest},
		{"not JSON", "POST", pods, "application/json", "", `{`, 400, metav1.StatusReasonBadRequest},
		{"unknown field, strictly", "POST", pods + "?fieldValidation=Strict", "application/json", "", `{"metadata":{"name":"b"},"colour":1}`, 400, metav1.StatusReasonBadRequest},
		{"dry run", "DELETE", pods + "/a?dryRun=All", "", "", "", 400, metav1.StatusReasonBadRequest},
		{"dry run in the body", "DELETE", pods + "/a", "application/json", "", `{"dryRun":["All"]}`, 400, metav1.StatusReasonBadRequest},
		{"not delete options", "DELETE", pods + "/a", "application/json", "", `{"kind":"Pod","apiVersion":"v1"}`, 400, metav1.StatusReasonBadRequest},
		{"no name in PUT", "PUT", pods + "/a", "application/json", "", `{}`, 400, metav1.StatusReasonBadRequest},
		{"too large", "POST", pods, "application/json", "", strings.Repeat(" ", maxBodyBytes+1), 413, metav1.StatusReasonRequestEntityTooLarge},
		{"bad selector", "GET", pods + "?labelSelector=%21%21", "", "", "", 400, metav1.StatusReasonBadRequest},
		{"bad version", "GET", pods + "?resourceVersion=x", "", "", "", 400, metav1.StatusReasonBadRequest},
		{"method on discovery", "POST", "/version", "", "", "", 405, metav1.StatusReasonMethodNotAllowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
			request.Header.Set("Content-Type", c.contentType)
			request.Header.Set("Accept", c.accept)
			recorder := httptest.NewRecorder()
			server.Handler().ServeHTTP(recorder, request)
			var status metav1.Status
			if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
				t.Fatalf("answer is %q: %v", recorder.Body, err)
			}
			if recorder.Code != c.code || status.Code != int32(c.code) || status.Reason != c.reason ||
				status.Kind != "Status" || status.Status != metav1.StatusFailure || status.Message == "" {
				t.Errorf("code %d, status %+v: want code %d, reason %s", recorder.Code, status, c.code, c.reason)
			}
		})
	}
	if got := server.Pods(); len(got) != 1 || got[0].DeletionTimestamp != nil {
		t.Errorf("a refused request changed something: %v", got)
	}
}

func TestHandler_Discovery(t *testing.T) {
	server, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/api/v1"} {
		recorder := newRecorder()
		server.Handler().ServeHTTP(recorder, newRequest(t, http.MethodGet, path))
		if recorder.Code != http.StatusOK || recorder.Body.Len() == 0 {
			t.Errorf("%s: code %d, %d bytes", path, recorder.Code, recorder.Body.Len())
		}
	}
}

func TestDefaults_PullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"app": corev1.PullAlways, "app:latest": corev1.PullAlways, "app:1": corev1.PullIfNotPresent,
		"host:5000/app": corev1.PullAlways, "host:5000/app:1": corev1.PullIfNotPresent, "app@sha256:00": corev1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("image %s: %s, want %s", image, got, want)
		}
	}
}

// benchServer has 10,000 pods.
func benchServer(b *testing.B) *Server {
	b.Helper()
	server := listen(b, Options{})
	for i := range 10_000 {
		pod := newPod("pod-" + strings.Repeat("0", 5-len(itoa(i))) + itoa(i))
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true}}}
		put(b, server, pod)
	}
	return server
}

func itoa(i int) string { data, _ := json.Marshal(i); return string(data) }

func BenchmarkList(b *testing.B) {
	pods := client(b, benchServer(b)).CoreV1().Pods(ns)
	for b.Loop() {
		list, err := pods.List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
		if err != nil || len(list.Items) != 10_000 {
			b.Fatalf("%d pods, error %v", len(list.Items), err)
		}
	}
}

func BenchmarkPatch(b *testing.B) {
	pods := client(b, benchServer(b)).CoreV1().Pods(ns)
	for i := 0; b.Loop(); i++ {
		if err := patchMessage(context.Background(), pods, "pod-00007", itoa(i)); err != nil {
			b.Fatal(err)
		}
	}
}
