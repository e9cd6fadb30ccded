// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// TestListOptions_AsTheAPIServer has the odd queries that kube-apiserver v1.37
// understands, and what it refuses.
func TestListOptions_AsTheAPIServer(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"a", "b", "c"} {
		s.mustSet(newPod(name, types.UID("uid-"+name)))
	}
	const (
		all   = 3
		watch = -1 // the answer is one
	)
	tests := []struct {
		query string
		want  int    // pods, or watch, or a code
		says  string // of a refusal
	}{
		{"limit=-1", all, ""},
		{"limit=0", all, ""},
		{"limit=2", 2, ""},
		{"limit=9223372036854775807", all, ""},
		{"limit=9223372036854775808", http.StatusBadRequest, "limit"},
		{"limit=", http.StatusBadRequest, "limit"},
		{"limit=many", http.StatusBadRequest, "limit"},
		{"limit=1.5", http.StatusBadRequest, "limit"},
		{"limit=2&limit=x", 2, ""},

		{"watch=foo", watch, ""},
		{"watch=", watch, ""},
		{"watch", watch, ""},
		{"watch=no", watch, ""},
		{"watch=t", watch, ""},
		{"watch=TRUE", watch, ""},
		{"watch=1", watch, ""},
		{"watch=0", all, ""},
		{"watch=FALSE", all, ""},
		{"watch=f", watch, ""},
		{"watch=false&watch=true", all, ""},
		{"watch=1&timeoutSeconds=-1", watch, ""},
		{"watch=1&timeoutSeconds=-9223372036854775808", watch, ""},
		{"watch=1&timeoutSeconds=soon", http.StatusBadRequest, "timeoutSeconds"},
		{"timeoutSeconds=-1", all, ""},
		{"timeoutSeconds=", http.StatusBadRequest, "timeoutSeconds"},
		{"allowWatchBookmarks=maybe", all, ""},

		{"resourceVersion=x", http.StatusBadRequest, "resourceVersion"},
		{"resourceVersion=-1", http.StatusBadRequest, "resourceVersion"},
		{"resourceVersion=0", all, ""},
		{"resourceVersionMatch=Exact", http.StatusUnprocessableEntity, "unless resourceVersion is provided"},
		{"resourceVersionMatch=NotOlderThan", http.StatusUnprocessableEntity, "unless resourceVersion is provided"},
		{"resourceVersionMatch=Exact&resourceVersion=0", http.StatusUnprocessableEntity, "resourceVersionMatch"},
		{"resourceVersionMatch=Newest&resourceVersion=1", http.StatusUnprocessableEntity, "Unsupported value"},
		{"resourceVersionMatch=NotOlderThan&resourceVersion=1", all, ""},
		{"sendInitialEvents=true", http.StatusUnprocessableEntity, "forbidden for list"},
		{"sendInitialEvents=false", http.StatusUnprocessableEntity, "forbidden for list"},
		{"watch=1&sendInitialEvents=true", http.StatusUnprocessableEntity, "resourceVersionMatch"},
		{"watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", http.StatusUnprocessableEntity, "resourceVersionMatch"},
		{"watch=1&resourceVersionMatch=NotOlderThan", http.StatusUnprocessableEntity, "unless sendInitialEvents is provided"},

		{"labelSelector=a%20in", http.StatusBadRequest, "labelSelector"},
		{"fieldSelector=a%20b", http.StatusBadRequest, "fieldSelector"},
		{"fieldSelector=spec.hostNetwork%3Dfalse", all, ""},
		{"fieldSelector=spec.hostNetwork%3Dtrue", 0, ""},
		{"includeObject=Some", http.StatusBadRequest, "includeObject"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			query := tt.query
			if tt.want == watch && !strings.Contains(query, "timeoutSeconds") {
				query += "&timeoutSeconds=-1"
			}
			r := s.do(http.MethodGet, "/api/v1/pods?"+query, "")
			switch {
			case tt.want == watch:
				r.into(t, http.StatusOK, nil)
				if got := r.header.Get("Content-Type"); got != contentJSON || strings.Contains(string(r.body), "PodList") {
					t.Errorf("got %s: %s, want a watch", got, r.body)
				}
			case tt.says != "":
				var status metav1.Status
				r.into(t, tt.want, &status)
				if !strings.Contains(status.Message, tt.says) {
					t.Errorf("got %q, want it to contain %q", status.Message, tt.says)
				}
			default:
				var list v1.PodList
				r.into(t, http.StatusOK, &list)
				if len(list.Items) != tt.want || list.Kind != "PodList" {
					t.Errorf("got %d pods in a %q, want %d", len(list.Items), list.Kind, tt.want)
				}
			}
		})
	}
}

// TestListOptions_LongWatch: a time that overflows in nanoseconds is a long one.
func TestListOptions_LongWatch(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	w := s.watch("&timeoutSeconds=9223372036854775807")
	w.want("ADDED web-0 uid-a")
	s.mustSet(newPod("web-1", "uid-b"))
	w.want("ADDED web-1 uid-b")
}

// TestWatch_NoInitialEvents: a client that says that it doesn't want what there is
// gets what comes.
func TestWatch_NoInitialEvents(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	for _, version := range []string{"", "&resourceVersion=0"} {
		w := s.watch("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan" + version)
		s.mustSet(newPod("web-1", "uid-b", message("x"+version)))
		if got := w.next(); !strings.Contains(got, " web-1 uid-b ") {
			t.Errorf("%q: got %q first", version, got)
		}
	}
	w := s.watch("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	if err := s.manager.Remove(t.Context(), "uid-a", journal.ReasonDeleted); err != nil {
		t.Fatal(err)
	}
	w.want("DELETED web-0 uid-a")
}
