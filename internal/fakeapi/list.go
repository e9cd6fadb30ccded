// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listOptions reads the options of a LIST, WATCH or collection DELETE.
func (c *call) listOptions() (metav1.ListOptions, selection, error) {
	var options metav1.ListOptions
	query := c.r.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil); err != nil {
		return options, selection{}, apierrors.NewBadRequest(err.Error())
	}
	sel, err := newSelection(c.target.namespace, options.LabelSelector, options.FieldSelector)
	if err != nil {
		return options, sel, err
	}
	return options, sel, validateListOptions(options)
}

func (c *call) list() error {
	options, sel, err := c.listOptions()
	if err != nil {
		return err
	}
	page, err := c.server.store.list(options, sel)
	if err != nil {
		return err
	}
	c.answer(http.StatusOK, page)
	return nil
}

// list answers a LIST. The items share memory with the store.
func (s *store) list(options metav1.ListOptions, sel selection) (*corev1.PodList, error) {
	if options.Continue != "" {
		return s.nextPage(options, sel)
	}
	version, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if current := s.current(); version > current {
		return nil, errTooLargeVersion(version, current)
	}
	// The oldest clients mean "exactly this version" when they ask for pages
	// of one and say no more.
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		options.ResourceVersionMatch == "" && version > 0 && options.Limit > 0
	if exact {
		pods, ok := s.stateAt(sel, version)
		if !ok {
			return nil, errExpired(fmt.Sprintf("too old resource version: %d", version))
		}
		return paginate(pods, version, options.Limit, sel), nil
	}
	limit := options.Limit
	if options.ResourceVersion == "0" {
		limit = 0 // "any version" is served from a cache that knows no pages
	}
	pods, current := s.state(sel)
	return paginate(pods, current, limit, sel), nil
}

// nextPage goes on with a list at the version of its first page.
func (s *store) nextPage(options metav1.ListOptions, sel selection) (*corev1.PodList, error) {
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return nil, apierrors.NewBadRequest("a resourceVersion is not allowed together with continue")
	}
	position, err := decodeContinue(options.Continue)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	version := uint64(0)
	if position.Version < 0 {
		pods, version = s.state(sel)
	} else {
		version = uint64(position.Version)
		ok := version <= s.current()
		if ok {
			pods, ok = s.stateAt(sel, version)
		}
		if !ok {
			return nil, errStaleContinue(position)
		}
	}
	after := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return keyOf(pod).compare(position.after()) > 0 })
	if after < 0 {
		after = len(pods)
	}
	return paginate(pods[after:], version, options.Limit, sel), nil
}

func paginate(pods []*corev1.Pod, version uint64, limit int64, sel selection) *corev1.PodList {
	if limit <= 0 || int64(len(pods)) <= limit {
		return newList(pods, version)
	}
	list := newList(pods[:limit], version)
	last := pods[limit-1]
	list.Continue = continuation{Version: int64(version), Namespace: last.Namespace, Name: last.Name}.encode()
	// As in a real server only a list of everything knows how much is left.
	if !sel.selects() {
		list.RemainingItemCount = new(int64(len(pods)) - limit)
	}
	return list
}

func newList(pods []*corev1.Pod, version uint64) *corev1.PodList {
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)},
		Items:    make([]corev1.Pod, len(pods)),
	}
	for i, pod := range pods {
		list.Items[i] = *pod
		list.Items[i].TypeMeta = metav1.TypeMeta{} // the list says it for all
	}
	return list
}

// continuation is where the next page begins: after a pod, at a version, or at
// the current one if Version is negative.
type continuation struct {
	Version   int64  `json:"version"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (c continuation) after() key { return key{c.Namespace, c.Name} }

func (c continuation) encode() string {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // impossible: a number and two strings
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeContinue(token string) (continuation, error) {
	var c continuation
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || c.Name == "" || c.Version == 0 {
		return c, apierrors.NewBadRequest("invalid continue token")
	}
	return c, nil
}

// errStaleContinue offers a token that goes on with the current version, for
// clients who prefer an inconsistent list to beginning anew.
func errStaleContinue(position continuation) error {
	err := apierrors.NewResourceExpired("the continue token is too old; begin a new list, or go on with the token in this answer and get a list that is not consistent")
	position.Version = -1
	err.ErrStatus.ListMeta.Continue = position.encode()
	return err
}

// parseVersion reads a resourceVersion; none is 0.
func parseVersion(version string) (uint64, error) {
	if version == "" {
		return 0, nil
	}
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
	}
	return parsed, nil
}
