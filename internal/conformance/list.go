// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

var listCases = []testCase{
	{"Selectors", func(b *bench) {
		b.create("a")
		b.create("b", unbound)
		b.create("c", func(pod *corev1.Pod) { pod.Labels["tier"] = "db" })
		b.mustPatch(b.prefix+"c", `{"status":{"phase":"Running"}}`)
		ours := b.label()
		for _, c := range []struct{ labels, fields, want string }{
			{ours, "", "a b c"},
			{ours, "spec.nodeName=" + b.target.Node, "a c"},
			{ours, "spec.nodeName=", "b"},
			{ours, "spec.nodeName!=" + b.target.Node, "b"},
			{ours, "status.phase=Running", "c"},
			{ours, "status.phase!=Running,spec.nodeName=" + b.target.Node, "a"},
			{ours, "metadata.name=" + b.prefix + "b", "b"},
			{ours, "metadata.namespace=" + namespace, "a b c"},
			{ours + ",tier=db", "", "c"},
			{ours + ",tier notin (db)", "", "a b"},
			{"conformance=nobody", "", ""},
		} {
			list := b.mustList(metav1.ListOptions{LabelSelector: c.labels, FieldSelector: c.fields})
			if got := b.names(list.Items); got != c.want {
				b.Errorf("labels %q, fields %q: got [%s], want [%s]", c.labels, c.fields, got, c.want)
			}
		}
	}},
	{"AllNamespaces", func(b *bench) {
		b.create("a")
		client := clientFor(b.T, b.target.Config)
		for ns, want := range map[string]string{metav1.NamespaceAll: "a", namespace: "a", "other": ""} {
			list, err := client.CoreV1().Pods(ns).List(b.ctx, metav1.ListOptions{LabelSelector: b.label()})
			if err != nil {
				b.Fatalf("list: %v", err)
			}
			if got := b.names(list.Items); got != want {
				b.Errorf("namespace %q: got [%s], want [%s]", ns, got, want)
			}
		}
	}},
	{"Pages", func(b *bench) {
		for i := range 5 {
			b.create(fmt.Sprint(i))
		}
		options := metav1.ListOptions{LabelSelector: b.label(), Limit: 2}
		first := b.mustList(options)
		if first.Continue == "" {
			b.Fatalf("no continue token after %d of 5 pods", len(first.Items))
		}
		// The rest has to show the state of the first page.
		b.mustPatch(b.prefix+"4", `{"status":{"message":"later"}}`)
		b.mustDelete(b.prefix+"3", grace(0))
		b.create("2b")

		items := first.Items
		for token := first.Continue; token != ""; {
			options.Continue = token
			page := b.mustList(options)
			if page.ResourceVersion != first.ResourceVersion {
				b.Errorf("resourceVersion of a later page is %s, of the first %s", page.ResourceVersion, first.ResourceVersion)
			}
			if len(page.Items) > 2 {
				b.Errorf("%d items in a page, want at most 2", len(page.Items))
			}
			items, token = append(items, page.Items...), page.Continue
		}
		if got := b.names(items); got != "0 1 2 3 4" {
			b.Errorf("got [%s], want [0 1 2 3 4]", got)
		}
		if last := items[len(items)-1]; last.Status.Message != "" {
			b.Errorf("last pod shows a later state")
		}
	}},
	{"StaleContinue", func(b *bench) {
		b.needsForgetting()
		for i := range 3 {
			b.create(fmt.Sprint(i))
		}
		options := metav1.ListOptions{LabelSelector: b.label(), Limit: 2}
		options.Continue = b.mustList(options).Continue
		b.mustPatch(b.prefix+"0", `{"status":{"message":"later"}}`)
		b.target.ForgetEvents()
		_, err := b.pods.List(b.ctx, options)
		b.wantError(err, http.StatusGone, metav1.StatusReasonExpired)
		status := err.(apierrors.APIStatus).Status()
		if options.Continue = status.Continue; options.Continue == "" {
			b.Fatal("no token to go on inconsistently")
		}
		if got := b.names(b.mustList(options).Items); got != "2" {
			b.Errorf("got [%s], want [2]", got)
		}
	}},
	{"BadContinue", func(b *bench) {
		_, err := b.pods.List(b.ctx, metav1.ListOptions{Limit: 2, Continue: "nonsense"})
		b.wantError(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}},
	{"AnyVersion", func(b *bench) {
		b.create("a")
		// Version 0 may be served from a cache that is behind, but not for long.
		for {
			list := b.mustList(metav1.ListOptions{LabelSelector: b.label(), ResourceVersion: "0"})
			if b.names(list.Items) == "a" {
				return
			}
		}
	}},
	{"NotOlderThan", func(b *bench) {
		pod := b.create("a")
		list := b.mustList(metav1.ListOptions{LabelSelector: b.label(), ResourceVersion: pod.ResourceVersion})
		if got := b.names(list.Items); got != "a" {
			b.Errorf("got [%s], want [a]", got)
		}
		if b.version(list.ResourceVersion) < b.version(pod.ResourceVersion) {
			b.Errorf("list is of version %s, asked for at least %s", list.ResourceVersion, pod.ResourceVersion)
		}
	}},
	{"ExactVersion", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"later"}}`)
		list := b.mustList(metav1.ListOptions{
			LabelSelector: b.label(), ResourceVersion: pod.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		if len(list.Items) != 1 || list.Items[0].ResourceVersion != pod.ResourceVersion {
			b.Errorf("got %d pods, want the one as it was", len(list.Items))
		}
	}},
	{"FutureVersion", func(b *bench) {
		// The answer says Retry-After, and the client would, ten times.
		err := clientFor(b.T, b.target.Config).CoreV1().RESTClient().Get().MaxRetries(0).
			Namespace(namespace).Resource("pods").Param("resourceVersion", "9000000000").
			Do(b.ctx).Error()
		if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			b.Errorf("error is %v, want one with cause %s", err, metav1.CauseTypeResourceVersionTooLarge)
		}
	}},
	{"UnknownField", func(b *bench) {
		_, err := b.pods.List(b.ctx, metav1.ListOptions{FieldSelector: "spec.color=red"})
		b.wantError(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}},
	{"JSONLikeProtobuf", func(b *bench) {
		b.create("a", func(pod *corev1.Pod) { pod.Annotations = map[string]string{"k": "ü\n"} })
		b.mustPatch(b.prefix+"a", `{"status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"app","image":"i","imageID":"","ready":true,"restartCount":1,"started":true,"state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}}]}}`)
		want := b.mustList(metav1.ListOptions{LabelSelector: b.label()})
		config := rest.CopyConfig(b.target.Config)
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
		list, err := clientFor(b.T, config).CoreV1().Pods(namespace).List(b.ctx, metav1.ListOptions{LabelSelector: b.label()})
		if err != nil {
			b.Fatalf("list as JSON: %v", err)
		}
		if diff := cmp.Diff(want.Items, list.Items); diff != "" {
			b.Errorf("protobuf (-) and JSON (+) differ:\n%s", diff)
		}
	}},
	{"ServerVersion", func(b *bench) {
		version, err := clientFor(b.T, b.target.Config).Discovery().ServerVersion()
		if err != nil || version.Major != "1" {
			b.Errorf("version %v, error %v: want major 1", version, err)
		}
		resources, err := clientFor(b.T, b.target.Config).Discovery().ServerResourcesForGroupVersion("v1")
		if err != nil {
			b.Fatalf("discover v1: %v", err)
		}
		for _, name := range []string{"pods", "pods/status"} {
			if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
				b.Errorf("resource %s is not among those of v1", name)
			}
		}
	}},
}

func (b *bench) label() string { return "conformance=" + strings.TrimSuffix(b.prefix, "-") }

func (b *bench) needsForgetting() {
	b.Helper()
	if b.target.ForgetEvents == nil {
		b.Skip("the server can't be made to forget its events")
	}
}

func (b *bench) mustList(options metav1.ListOptions) *corev1.PodList {
	b.Helper()
	list, err := b.pods.List(b.ctx, options)
	if err != nil {
		b.Fatalf("list: %v", err)
	}
	return list
}

// names are those of the pods without the prefix, in order.
func (b *bench) names(pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = strings.TrimPrefix(pod.Name, b.prefix)
	}
	return strings.Join(names, " ")
}

func (b *bench) version(version string) uint64 {
	b.Helper()
	parsed, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		b.Fatalf("resourceVersion: %v", err)
	}
	return parsed
}
