// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"
	"net/url"
	"strings"
)

// Verb is what a request does, as it is counted and matched.
type Verb string

// The verbs. Only Discovery isn't about pods: it stands for any method on the
// paths that tell about the server (/version, /api, /healthz, …).
const (
	Get              Verb = "GET"
	List             Verb = "LIST"
	Watch            Verb = "WATCH"
	Post             Verb = "POST"
	Put              Verb = "PUT"
	Patch            Verb = "PATCH"
	Delete           Verb = "DELETE"
	DeleteCollection Verb = "DELETECOLLECTION"
	Discovery        Verb = "DISCOVERY"
)

// target is what a request is about.
type target struct {
	verb        Verb
	namespace   string
	name        string
	subresource string
	unknown     bool // not a path that we serve
}

func (t target) key() key { return key{t.namespace, t.name} }

// parseTarget reads /api/v1/pods and /api/v1/namespaces/NS/pods[/NAME[/SUB]].
func parseTarget(r *http.Request) target {
	rest, isCore := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !isCore || rest == "" {
		return target{verb: Discovery}
	}
	t := target{verb: Verb(r.Method)}
	parts := strings.Split(strings.TrimSuffix(rest, "/"), "/")
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.namespace, parts = parts[1], parts[2:]
		if len(parts) > 1 {
			t.name = parts[1]
		}
		if len(parts) > 2 {
			t.subresource = parts[2]
		}
	}
	t.unknown = parts[0] != "pods" || len(parts) > 3 ||
		(t.namespace == "" && len(parts) > 1) ||
		(t.subresource != "" && t.subresource != "status")
	if t.name == "" {
		t.verb = collectionVerb(r)
	} else if r.Method == http.MethodGet && isTrue(r.URL.Query(), "watch") {
		t.verb = Watch
	}
	return t
}

func collectionVerb(r *http.Request) Verb {
	switch {
	case r.Method == http.MethodDelete:
		return DeleteCollection
	case r.Method != http.MethodGet:
		return Verb(r.Method)
	case isTrue(r.URL.Query(), "watch"):
		return Watch
	default:
		return List
	}
}

// isTrue reads a query parameter as the API conventions do: anything but
// "false" and "0" counts.
func isTrue(query url.Values, name string) bool {
	if !query.Has(name) {
		return false
	}
	value := strings.ToLower(query.Get(name))
	return value != "false" && value != "0"
}
