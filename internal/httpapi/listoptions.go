// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/statusstore/statusstore/journal"
)

// listOptions are the parameters of a LIST or WATCH.
type listOptions struct {
	namespace string // "" is all
	labels    labels.Selector
	fields    fields.Selector

	watch        bool
	bookmarks    bool
	initial      bool // a watch begins with what there is, and says where that ends
	timeout      time.Duration
	sequence     journal.Sequence // resourceVersion; 0 is none, or any
	exact        bool
	limit        int
	from         position
	tableObjects metav1.IncludeObjectPolicy
}

// position is where a list goes on. It is the content of a continue token.
type position struct {
	Namespace string           `json:"ns"`
	Name      string           `json:"n"`
	Sequence  journal.Sequence `json:"rv"` // resourceVersion of the first page
}

func (p position) token() string {
	data, _ := json.Marshal(p) // strings and a number
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(token string) (position, error) {
	var p position
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Sequence == 0 {
		return p, badRequest("the continue token is not one of this server")
	}
	return p, nil
}

// before says whether a name comes before the position, or is it.
func (p position) before(namespace, name string) bool {
	return namespace < p.Namespace || namespace == p.Namespace && name <= p.Name
}

func parseListOptions(r *http.Request) (listOptions, error) {
	q := r.URL.Query()
	o := listOptions{namespace: r.PathValue("ns")}
	var err error
	if o.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return o, badRequest("labelSelector: %v", err)
	}
	if o.fields, err = parseFields(q.Get("fieldSelector")); err != nil {
		return o, err
	}
	for name, into := range map[string]*bool{
		"watch": &o.watch, "allowWatchBookmarks": &o.bookmarks, "sendInitialEvents": &o.initial,
	} {
		if *into, err = parseBool(q.Get(name)); err != nil {
			return o, badRequest("%s: %v", name, err)
		}
	}
	if o.sequence, err = parseSequence(q.Get("resourceVersion")); err != nil {
		return o, err
	}
	if o.limit, err = parseCount("limit", q.Get("limit")); err != nil {
		return o, err
	}
	seconds, err := parseCount("timeoutSeconds", q.Get("timeoutSeconds"))
	if err != nil {
		return o, err
	}
	o.timeout = time.Duration(seconds) * time.Second
	if token := q.Get("continue"); token != "" {
		if q.Get("resourceVersion") != "" && q.Get("resourceVersion") != "0" {
			return o, badRequest("resourceVersion is not allowed with continue")
		}
		if o.from, err = parseToken(token); err != nil {
			return o, err
		}
	}
	switch o.tableObjects = metav1.IncludeObjectPolicy(q.Get("includeObject")); o.tableObjects {
	case "", metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
	default:
		return o, badRequest("includeObject %q is none of None, Metadata and Object", o.tableObjects)
	}
	return o, o.checkMatch(q.Get("resourceVersionMatch"), q.Has("sendInitialEvents"))
}

// checkMatch holds the rules that Kubernetes has for resourceVersionMatch.
func (o *listOptions) checkMatch(match string, initialGiven bool) error {
	m := metav1.ResourceVersionMatch(match)
	switch {
	case m != "" && m != metav1.ResourceVersionMatchExact && m != metav1.ResourceVersionMatchNotOlderThan:
		return badRequest("resourceVersionMatch %q is neither Exact nor NotOlderThan", match)
	case o.watch && initialGiven && m != metav1.ResourceVersionMatchNotOlderThan:
		return badRequest("sendInitialEvents needs resourceVersionMatch=NotOlderThan")
	case o.watch && !initialGiven && m != "":
		return badRequest("resourceVersionMatch is not allowed for a watch without sendInitialEvents")
	case !o.watch && initialGiven:
		return badRequest("sendInitialEvents is only allowed for a watch")
	case m == metav1.ResourceVersionMatchExact && o.sequence == 0:
		return badRequest("resourceVersionMatch=Exact needs a resourceVersion")
	}
	o.exact = m == metav1.ResourceVersionMatchExact
	return nil
}

func parseBool(s string) (bool, error) {
	switch s {
	case "":
		return false, nil
	case "1":
		return true, nil
	case "0":
		return false, nil
	}
	v, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("want true or false, got %q", s)
	}
	return v, nil
}

func parseSequence(s string) (journal.Sequence, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, badRequest("resourceVersion %q is not a sequence of the journal", s)
	}
	return journal.Sequence(n), nil
}

func parseCount(name, s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, badRequest("%s %q is not a number from 0 on", name, s)
	}
	return int(n), nil
}

// selectableFields are those that Kubernetes has for pods, as far as they are
// known here.
var selectableFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy",
	"spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP", "status.nominatedNodeName",
}

func parseFields(s string) (fields.Selector, error) {
	sel, err := fields.ParseSelector(s)
	if err != nil {
		return nil, badRequest("fieldSelector: %v", err)
	}
	for _, term := range sel.Requirements() {
		if !slices.Contains(selectableFields, term.Field) {
			return nil, badRequest("field label not supported: %s", term.Field)
		}
	}
	return sel, nil
}

// changes says whether a pod may come to match, or cease to, when its status does.
func (o *listOptions) changes() bool {
	return slices.ContainsFunc(o.fields.Requirements(), func(t fields.Requirement) bool {
		return len(t.Field) > 7 && t.Field[:7] == "status."
	})
}

// identifies says whether the identity of a pod is enough to tell if it matches.
func (o *listOptions) identifies() bool {
	return o.labels.Empty() && !slices.ContainsFunc(o.fields.Requirements(), func(t fields.Requirement) bool {
		return !strings.HasPrefix(t.Field, "metadata.") && t.Field != "spec.nodeName"
	})
}

func (o *listOptions) matches(pod *v1.Pod) bool {
	if o.namespace != "" && pod.Namespace != o.namespace {
		return false
	}
	if !o.labels.Empty() && !o.labels.Matches(labels.Set(pod.Labels)) {
		return false
	}
	return o.fields.Empty() || o.fields.Matches(podFields(pod))
}

func podFields(pod *v1.Pod) fields.Set {
	return fields.Set{
		"metadata.name":            pod.Name,
		"metadata.namespace":       pod.Namespace,
		"metadata.uid":             string(pod.UID),
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}
