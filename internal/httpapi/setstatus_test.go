// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

func TestPutStatus(t *testing.T) {
	s := newStore(t)
	pod := newPod("web-0", "uid-a", message("one"))
	pod.ResourceVersion = "123456" // the API server's, which means nothing here
	r := s.mustSet(pod)
	var got v1.Pod
	r.into(t, http.StatusOK, &got)
	if got.Status.Message != "one" || got.Spec.NodeName != "node-1" || got.Kind != "Pod" || got.UID != "uid-a" {
		t.Errorf("got %s", r.body)
	}
	if got.ResourceVersion != "2" {
		t.Errorf("got resourceVersion %s, want the sequence, 2", got.ResourceVersion)
	}
	for name, want := range map[string]uint64{HeaderVersion: 1, HeaderAckedVersion: 0, HeaderSequence: 2} {
		if n := number(t, r.header, name); n != want {
			t.Errorf("%s: got %d, want %d", name, n, want)
		}
	}
	if r := s.mustSet(pod); number(t, r.header, HeaderVersion) != 1 {
		t.Error("the same status made a version")
	}
	s.wantHead(2)

	// Conditional.
	next := jsonOf(t, newPod("web-0", "uid-a", message("two")))
	path := PodStatusPath("default", "web-0")
	s.do(http.MethodPut, path, next, "If-Match", "2").into(t, http.StatusPreconditionFailed, nil)
	r = s.do(http.MethodPut, path, next, "If-Match", r.header.Get("ETag"))
	r.into(t, http.StatusOK, nil)
	if n := number(t, r.header, HeaderVersion); n != 2 {
		t.Errorf("got version %d, want 2", n)
	}
	s.do(http.MethodPut, PodStatusPath("default", "web-1"), jsonOf(t, newPod("web-1", "uid-b")), "If-Match", "0").into(t, http.StatusOK, nil)

	s.do(http.MethodGet, path, "").into(t, http.StatusOK, &got)
	if got.Status.Message != "two" {
		t.Errorf("got message %q, want two", got.Status.Message)
	}
}

func TestPutStatus_Protobuf(t *testing.T) {
	s := newStore(t)
	r := s.do(http.MethodPut, PodStatusPath("default", "web-0"), protoOf(t, newPod("web-0", "uid-a", message("proto"))),
		"Content-Type", contentProtobuf, "Accept", contentProtobuf)
	r.into(t, http.StatusOK, nil)
	if got := r.header.Get("Content-Type"); got != contentProtobuf {
		t.Errorf("got %s, want %s", got, contentProtobuf)
	}
	obj, _, err := protoSerializer.Decode(r.body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if pod := obj.(*v1.Pod); pod.Status.Message != "proto" || pod.UID != "uid-a" {
		t.Errorf("got %+v", pod)
	}
}

// TestPutStatus_StatusOnly keeps what is known of a pod when only its status is
// given: the spec decides which transitions are legal.
func TestPutStatus_StatusOnly(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a", terminated(1)))
	bare := newPod("web-0", "uid-a", terminated(1), message("bare"))
	bare.Spec, bare.Labels = v1.PodSpec{}, nil
	var got v1.Pod
	s.mustSet(bare).into(t, http.StatusOK, &got)
	if got.Status.Message != "bare" || len(got.Spec.Containers) != 2 || got.Labels["app"] != "web-0" {
		t.Errorf("got %+v", got)
	}
	again := newPod("web-0", "uid-a")
	again.Spec = v1.PodSpec{}
	s.do(http.MethodPut, PodStatusPath("default", "web-0"), jsonOf(t, again)).into(t, http.StatusUnprocessableEntity, nil)
}

func TestPutStatus_WarnsOfUnknownFields(t *testing.T) {
	s := newStore(t)
	body := strings.Replace(jsonOf(t, newPod("web-0", "uid-a")), `"phase"`, `"newField":"\u0001x","phase"`, 1)
	r := s.do(http.MethodPut, PodStatusPath("default", "web-0"), body)
	r.into(t, http.StatusOK, nil)
	if !strings.Contains(r.header.Get("Warning"), "newField") {
		t.Errorf("got warning %q", r.header.Get("Warning"))
	}
}

func TestPatchStatus(t *testing.T) {
	const (
		strategic = "application/strategic-merge-patch+json"
		merge     = "application/merge-patch+json"
		json6902  = "application/json-patch+json"
	)
	first := newPod("web-0", "uid-a", message("one"))
	tests := []struct {
		name, mediaType, body string
		check                 func(v1.Pod) bool
	}{
		{"strategic", strategic, `{"metadata":{"uid":"uid-a"},"status":{"message":"two","conditions":[{"type":"Ready","status":"False"}]}}`,
			func(p v1.Pod) bool {
				return len(p.Status.Conditions) == 2 && p.Status.Conditions[0].Status == v1.ConditionFalse && p.Status.Conditions[1].Status == v1.ConditionTrue
			}},
		{"merge", merge, `{"status":{"message":"two","podIP":null}}`, func(p v1.Pod) bool { return p.Status.PodIP == "" }},
		{"json", json6902, `[{"op":"replace","path":"/status/message","value":"two"},{"op":"remove","path":"/status/podIP"}]`, func(p v1.Pod) bool { return p.Status.PodIP == "" }},
		{"whole pod", merge, jsonOf(t, newPod("web-0", "uid-a", message("two"))), func(p v1.Pod) bool { return len(p.Status.ContainerStatuses) == 2 }},
		{"only the status counts", merge, `{"metadata":{"labels":{"app":"x"}},"spec":{"nodeName":"y"},"status":{"message":"two"}}`,
			func(p v1.Pod) bool { return p.Labels["app"] == "web-0" && p.Spec.NodeName == "node-1" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			s.mustSet(first)
			r := s.do(http.MethodPatch, PodStatusPath("default", "web-0"), tt.body, "Content-Type", tt.mediaType)
			var got v1.Pod
			r.into(t, http.StatusOK, &got)
			if got.Status.Message != "two" || number(t, r.header, HeaderVersion) != 2 || !tt.check(got) {
				t.Errorf("got %s", r.body)
			}
		})
	}
	t.Run("whole pod that is new", func(t *testing.T) {
		s := newStore(t)
		for _, mediaType := range []string{strategic, merge} {
			s.do(http.MethodPatch, PodStatusPath("default", "web-0"), jsonOf(t, first), "Content-Type", mediaType).into(t, http.StatusOK, nil)
		}
		// Recreated under its name: another pod.
		s.do(http.MethodPatch, PodStatusPath("default", "web-0"), jsonOf(t, newPod("web-0", "uid-b")), "Content-Type", merge).into(t, http.StatusOK, nil)
		if n := len(s.manager.EntriesByName("default", "web-0")); n != 2 {
			t.Errorf("got %d pods of the name, want 2", n)
		}
	})
	t.Run("version", func(t *testing.T) {
		s := newStore(t)
		s.mustSet(first)
		s.do(http.MethodPatch, PodStatusPath("default", "web-0"), `{"status":{"message":"two"}}`, "Content-Type", merge, "If-Match", "9").into(t, http.StatusPreconditionFailed, nil)
	})
}

// TestPatchStatus_Concurrent wants no patch to undo another one.
func TestPatchStatus_Concurrent(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	bodies := []string{`{"status":{"message":"m"}}`, `{"status":{"reason":"r"}}`, `{"status":{"nominatedNodeName":"n"}}`, `{"status":{"podIP":"10.9.9.9"}}`}
	var wg sync.WaitGroup
	for _, body := range bodies {
		wg.Go(func() {
			s.do(http.MethodPatch, PodStatusPath("default", "web-0"), body, "Content-Type", "application/merge-patch+json").into(t, http.StatusOK, nil)
		})
	}
	wg.Wait()
	got, _ := s.manager.GetPodStatus("uid-a")
	if got.Message != "m" || got.Reason != "r" || got.NominatedNodeName != "n" || got.PodIP != "10.9.9.9" {
		t.Errorf("a patch was lost: %+v", got)
	}
}

// C62: sends what is too large or too deep.
func TestC62(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	path := PodStatusPath("default", "web-0")
	deep := strings.Repeat(`{"a":`, 1_000_000)
	tests := []struct {
		name, method, path, body, mediaType string
		code                                int
	}{
		{"deep pod", "PUT", path, deep, contentJSON, http.StatusRequestEntityTooLarge},
		{"deep pod within the limit", "PUT", path, deep[:2<<20], contentJSON, http.StatusBadRequest},
		{"deep list", "PUT", path, strings.Repeat("[", 1_000_000), contentJSON, http.StatusBadRequest},
		{"deep merge patch", "PATCH", path, deep[:2<<20], "application/merge-patch+json", http.StatusBadRequest},
		{"deep strategic patch", "PATCH", path, deep[:2<<20], "application/strategic-merge-patch+json", http.StatusBadRequest},
		{"deep call", "POST", PathRetain, strings.Repeat("[", 1_000_000), contentJSON, http.StatusBadRequest},
		{"large pod", "PUT", path, `{"status":{"message":"` + strings.Repeat("x", 4<<20) + `"}}`, contentJSON, http.StatusRequestEntityTooLarge},
		{"many operations", "PATCH", path, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Pod"},`, 2000) + `{"op":"test","path":"/kind","value":"Pod"}]`, "application/json-patch+json", http.StatusRequestEntityTooLarge},
		{"copies of copies", "PATCH", path, copies(60), "application/json-patch+json", http.StatusUnprocessableEntity},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var status metav1.Status
			s.do(tt.method, tt.path, tt.body, "Content-Type", tt.mediaType).into(t, tt.code, &status)
		})
	}
	t.Run("endless", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://statusstore"+path, &endless{limit: 2 << 30})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentJSON)
		resp, err := s.client.Do(req)
		if err != nil {
			return // the connection was closed
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d, want 413", resp.StatusCode)
		}
	})
	s.wantHead(2)
}

// copies is a patch that would double the pod's status again and again.
func copies(n int) string {
	operations := make([]string, n)
	for i := range operations {
		operations[i] = fmt.Sprintf(`{"op":"copy","from":"/status","path":"/status/x%d"}`, i)
	}
	return "[" + strings.Join(operations, ",") + "]"
}

// endless is a body without a length.
type endless struct{ limit, sent int }

func (e *endless) Read(b []byte) (int, error) {
	if e.sent >= e.limit {
		return 0, fmt.Errorf("the server has read all of it")
	}
	n := copy(b, bytes.Repeat([]byte(" "), len(b)))
	e.sent += n
	return n, nil
}

// TestSemantics50_BodyIsNotThePreviousStatus: the status in the body is the new
// one, so its transition times are not taken for those of an earlier one.
func TestSemantics50_BodyIsNotThePreviousStatus(t *testing.T) {
	s := newStore(t)
	offered := metav1.Unix(1000, 0)
	pod := newPod("web-0", "uid-a", func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: offered}}
	})
	var got v1.Pod
	s.mustSet(pod).into(t, http.StatusOK, &got)
	first := got.Status.Conditions[0].LastTransitionTime
	if first.IsZero() || first.Equal(&offered) {
		t.Errorf("got transition time %v, want that of the call", first)
	}
	pod.Status.Message = "more"
	s.mustSet(pod).into(t, http.StatusOK, &got)
	if again := got.Status.Conditions[0].LastTransitionTime; !again.Equal(&first) {
		t.Errorf("transition time moved from %v to %v without a transition", first, again)
	}
}

// C49: termination messages of a megabyte are cut, not refused.
func TestC49_HugeTerminationMessages(t *testing.T) {
	s := newStore(t)
	pod := newPod("web-0", "uid-a", terminated(1))
	pod.Status.ContainerStatuses[0].State.Terminated.Message = strings.Repeat("é", 600<<10)
	var got v1.Pod
	s.mustSet(pod).into(t, http.StatusOK, &got)
	message := got.Status.ContainerStatuses[0].State.Terminated.Message
	if len(message) > 12<<10 || len(message) < 4<<10 || strings.Trim(message, "é") != "" {
		t.Errorf("stored a message of %d bytes", len(message))
	}
	if r := s.mustSet(pod); number(t, r.header, HeaderVersion) != 1 {
		t.Error("the same input made a version")
	}
}

// TestPutStatus_Exact: with resourceVersionMatch=Exact, and only then, an update of
// what has changed since it was read is a conflict, as client-go expects it.
func TestPutStatus_Exact(t *testing.T) {
	s := newStore(t)
	path := PodStatusPath("default", "web-0")
	pod := newPod("web-0", "uid-a", message("one"))
	put := func(query, resourceVersion, text string, headers ...string) reply {
		changed := pod.DeepCopy()
		changed.ResourceVersion, changed.Status.Message = resourceVersion, text
		return s.do(http.MethodPut, path+query, jsonOf(t, changed), headers...)
	}
	put("?resourceVersionMatch=Exact", "1", "early").into(t, http.StatusNotFound, nil)
	s.mustSet(pod)
	var read v1.Pod
	s.do(http.MethodGet, path, "").into(t, http.StatusOK, &read)
	put("?resourceVersionMatch=Exact", read.ResourceVersion, "two").into(t, http.StatusOK, nil)
	var conflict metav1.Status
	put("?resourceVersionMatch=Exact", read.ResourceVersion, "three").into(t, http.StatusConflict, &conflict)
	if conflict.Reason != metav1.StatusReasonConflict {
		t.Errorf("got reason %s, want Conflict", conflict.Reason)
	}
	// Pods come from the API server as a rule, with its resourceVersion.
	put("", "999999", "of the API server").into(t, http.StatusOK, nil)
	for name, r := range map[string]reply{
		"none":     put("?resourceVersionMatch=Exact", "", "x"),
		"no count": put("?resourceVersionMatch=Exact", "x", "x"),
		"word":     put("?resourceVersionMatch=NotOlderThan", read.ResourceVersion, "x"),
		"both":     put("?resourceVersionMatch=Exact", read.ResourceVersion, "x", "If-Match", "1"),
		"patch":    s.do(http.MethodPatch, path+"?resourceVersionMatch=Exact", `{"status":{"message":"x"}}`, "Content-Type", string(types.MergePatchType)),
	} {
		if r.code != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400: %s", name, r.code, r.body)
		}
	}
	s.do(http.MethodGet, path, "").into(t, http.StatusOK, &read)
	if read.Status.Message != "of the API server" {
		t.Errorf("got %q", read.Status.Message)
	}
}

// TestPutStatus_ExactConcurrent: read, change and write with client-go's retry lose
// nothing.
func TestPutStatus_ExactConcurrent(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://statusstore", QPS: -1, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 10
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range each {
				err := retry.OnError(wait.Backoff{Steps: 1000, Duration: time.Millisecond}, apierrors.IsConflict, func() error {
					pod, err := client.CoreV1().Pods("default").Get(t.Context(), "web-0", metav1.GetOptions{})
					if err != nil {
						return err
					}
					pod.Status.Message += "x"
					return client.CoreV1().RESTClient().Put().Namespace("default").Resource("pods").Name("web-0").SubResource("status").
						Param("resourceVersionMatch", "Exact").Body(pod).Do(t.Context()).Error()
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var pod v1.Pod
	s.do(http.MethodGet, PodPath("default", "web-0"), "").into(t, http.StatusOK, &pod)
	if got := strings.Count(pod.Status.Message, "x"); got != writers*each {
		t.Errorf("got %d changes, want %d", got, writers*each)
	}
}

// TestNamespace is there as long as it has pods.
func TestNamespace(t *testing.T) {
	s := newStore(t)
	s.do(http.MethodGet, "/api/v1/namespaces/default", "").into(t, http.StatusNotFound, nil)
	s.mustSet(newPod("web-0", "uid-a"))
	var ns v1.Namespace
	s.do(http.MethodGet, "/api/v1/namespaces/default", "").into(t, http.StatusOK, &ns)
	if ns.Name != "default" || ns.Status.Phase != v1.NamespaceActive {
		t.Errorf("got %+v", ns)
	}
}
