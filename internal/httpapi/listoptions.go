// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusstore/statusstore/journal"
)

// listOptions are the parameters of a LIST or WATCH.
type listOptions struct {
	namespace string // "" is all
	labels    labels.Selector
	fields    fields.Selector

	watch        bool
	bookmarks    bool
	initial      *bool            // whether a watch begins with what there is, and says where that ends
	timeout      *time.Duration   // of a watch; nil is none, and a negative one is over at once
	sequence     journal.Sequence // resourceVersion; 0 is none, or any
	exact        bool
	limit        int // below 1: none
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

// parseListOptions reads a query as Kubernetes' API server does, with its own code:
// of "watch" and its like only "0" and "false" mean no, a limit below 1 is none, and
// values that can't be read are a bad request.
func parseListOptions(r *http.Request) (listOptions, error) {
	o := listOptions{namespace: r.PathValue("ns")}
	q := r.URL.Query()
	for _, name := range []string{"limit", "timeoutSeconds"} {
		if _, err := strconv.ParseInt(q.Get(name), 10, 64); err != nil && q.Has(name) {
			return o, badRequest("%s: want a whole number, got %q", name, q.Get(name))
		}
	}
	var given metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&q, &given, nil); err != nil {
		return o, badRequest("%v", err)
	}
	var err error
	if o.labels, err = labels.Parse(given.LabelSelector); err != nil {
		return o, badRequest("labelSelector: %v", err)
	}
	if o.fields, err = parseFields(given.FieldSelector); err != nil {
		return o, err
	}
	if err := checkCombination(given); err != nil {
		return o, err
	}
	o.watch, o.bookmarks = given.Watch, given.AllowWatchBookmarks
	o.initial = given.SendInitialEvents
	o.exact = given.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	o.limit = int(min(given.Limit, math.MaxInt32))
	if s := given.TimeoutSeconds; s != nil && *s != 0 {
		o.timeout = new(time.Duration(max(-1, min(*s, maxTimeoutSeconds))) * time.Second)
	}
	if o.sequence, err = parseSequence(given.ResourceVersion); err != nil {
		return o, err
	}
	if given.Continue != "" {
		if o.sequence != 0 {
			return o, badRequest("resourceVersion is not allowed with continue")
		}
		if o.from, err = parseToken(given.Continue); err != nil {
			return o, err
		}
	}
	o.tableObjects, err = parseTableObjects(q)
	return o, err
}

// beginsWithAll says whether a watch shows first what there is.
func (o *listOptions) beginsWithAll() bool {
	if o.initial == nil {
		return o.sequence == 0
	}
	return *o.initial
}

// maxTimeoutSeconds is ten years: more would overflow.
const maxTimeoutSeconds = 10 * 365 * 24 * 60 * 60

// parseTableObjects reads how much of each object a table has.
func parseTableObjects(q url.Values) (metav1.IncludeObjectPolicy, error) {
	switch policy := metav1.IncludeObjectPolicy(q.Get("includeObject")); policy {
	case "", metav1.IncludeMetadata, metav1.IncludeObject, metav1.IncludeNone:
		return policy, nil
	default:
		return "", badRequest("includeObject %q is none of None, Metadata and Object", policy)
	}
}

// checkCombination holds Kubernetes' rules for what goes together.
func checkCombination(given metav1.ListOptions) error {
	errs := listvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch: given.Watch, SendInitialEvents: given.SendInitialEvents, Continue: given.Continue,
		ResourceVersion: given.ResourceVersion, ResourceVersionMatch: given.ResourceVersionMatch,
	}, true)
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
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

// selectableFields are those that Kubernetes has for pods, and the UID.
var selectableFields = []string{
	"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy", "spec.hostNetwork",
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
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}
