// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func names(list v1.PodList) []string {
	out := []string{}
	for _, pod := range list.Items {
		out = append(out, pod.Namespace+"/"+pod.Name)
	}
	return out
}

func inNamespace(ns string) func(*v1.Pod) { return func(p *v1.Pod) { p.Namespace = ns } }

func TestList(t *testing.T) {
	s := newStore(t)
	for i, pod := range []*v1.Pod{
		newPod("b", "uid-b", inNamespace("ns-2")), newPod("a", "uid-a"), newPod("b", "uid-c", phase(v1.PodPending)),
	} {
		pod.Labels["tier"] = fmt.Sprint(i)
		s.mustSet(pod)
	}
	tests := []struct {
		path string
		want []string
	}{
		{"/api/v1/pods", []string{"default/a", "default/b", "ns-2/b"}},
		{"/api/v1/namespaces/default/pods", []string{"default/a", "default/b"}},
		{"/api/v1/namespaces/other/pods", []string{}},
		{"/api/v1/pods?labelSelector=app%3Db", []string{"default/b", "ns-2/b"}},
		{"/api/v1/pods?labelSelector=tier+in+(0,1),app!%3Da", []string{"ns-2/b"}},
		{"/api/v1/pods?fieldSelector=metadata.name%3Db,metadata.namespace%3Dns-2", []string{"ns-2/b"}},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1,status.phase!%3DRunning", []string{"default/b"}},
		{"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-2", []string{}},
		{"/api/v1/pods?resourceVersion=4&resourceVersionMatch=Exact", []string{"default/a", "default/b", "ns-2/b"}},
		{"/api/v1/pods?resourceVersion=2&resourceVersionMatch=NotOlderThan", []string{"default/a", "default/b", "ns-2/b"}},
	}
	for _, tt := range tests {
		var list v1.PodList
		s.do(http.MethodGet, tt.path, "").into(t, http.StatusOK, &list)
		if diff := cmp.Diff(tt.want, names(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
		if list.ResourceVersion != "4" || list.Kind != "PodList" {
			t.Errorf("%s: got %s of version %s", tt.path, list.Kind, list.ResourceVersion)
		}
	}
	r := s.do(http.MethodGet, "/api/v1/pods", "", "Accept", "text/html;q=0.9, "+contentProtobuf+", application/json;q=0.5")
	obj, _, err := protoSerializer.Decode(r.body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(*obj.(*v1.PodList)); len(got) != 3 {
		t.Errorf("protobuf: got %v", got)
	}
}

func TestList_Pages(t *testing.T) {
	s := newStore(t)
	var want []string
	for i := range 7 {
		s.mustSet(newPod(fmt.Sprintf("p%d", i), types.UID(fmt.Sprintf("uid-%d", i))))
		want = append(want, fmt.Sprintf("default/p%d", i))
	}
	var got []string
	next := ""
	for pages := 1; ; pages++ {
		var list v1.PodList
		s.do(http.MethodGet, "/api/v1/pods?limit=3&continue="+url.QueryEscape(next), "").into(t, http.StatusOK, &list)
		got = append(got, names(list)...)
		if list.ResourceVersion != "8" {
			t.Errorf("page %d has version %s, want that of the first page, 8", pages, list.ResourceVersion)
		}
		if pages == 1 {
			if list.RemainingItemCount == nil || *list.RemainingItemCount != 4 {
				t.Errorf("got %v remaining, want 4", list.RemainingItemCount)
			}
			s.mustSet(newPod("p9", "uid-z")) // moves the head, and comes with a later page
			want = append(want, "default/p9")
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestList_Recreated shows one pod per name, the one with the newest event.
func TestList_Recreated(t *testing.T) {
	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	s.mustSet(newPod("web-0", "uid-b"))
	var list v1.PodList
	s.do(http.MethodGet, "/api/v1/pods", "").into(t, http.StatusOK, &list)
	if len(list.Items) != 1 || list.Items[0].UID != "uid-b" {
		t.Errorf("got %v", list.Items)
	}
	var records PodRecordList
	s.do(http.MethodGet, PathPods, "").into(t, http.StatusOK, &records)
	if len(records.Pods) != 2 {
		t.Errorf("got %d records, want both", len(records.Pods))
	}
}

const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

func TestTable(t *testing.T) {
	crash := func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].RestartCount = 3
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	initializing := func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "i1"}, {Name: "i2"}}
		p.Status.Phase = v1.PodPending
		p.Status.InitContainerStatuses = []v1.ContainerStatus{
			{Name: "i1", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
			{Name: "i2", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}
		p.Status.ContainerStatuses = nil
	}
	deleted := func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	gated := func(p *v1.Pod) { p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "x"}} }
	tests := []struct {
		name string
		edit func(*v1.Pod)
		want []any
	}{
		{"running", func(*v1.Pod) {}, []any{"2/2", "Running", "0", "5m", "10.0.0.1", "node-1", "<none>", "<none>"}},
		{"failed container", terminated(2), []any{"1/2", "Error", "0", "5m", "10.0.0.1", "node-1", "<none>", "<none>"}},
		{"crash loop", crash, []any{"1/2", "CrashLoopBackOff", "3", "5m", "10.0.0.1", "node-1", "<none>", "<none>"}},
		{"init", initializing, []any{"0/2", "Init:1/2", "0", "5m", "10.0.0.1", "node-1", "<none>", "<none>"}},
		{"deleted", deleted, []any{"2/2", "Terminating", "0", "5m", "10.0.0.1", "node-1", "<none>", "<none>"}},
		{"gate", gated, []any{"2/2", "Running", "0", "5m", "10.0.0.1", "node-1", "<none>", "0/1"}},
		{"evicted", func(p *v1.Pod) {
			p.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted"}
		}, []any{"0/2", "Evicted", "0", "5m", "<none>", "node-1", "<none>", "<none>"}},
		{"gone for good", func(p *v1.Pod) { p.Spec, p.Status.Phase = v1.PodSpec{}, "" }, []any{"2/2", "Unknown", "0", "5m", "10.0.0.1", "<none>", "<none>", "<none>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := newTable("1", listOptions{})
			table.add(newPod("web-0", "uid-a", tt.edit))
			if diff := cmp.Diff(append([]any{"web-0"}, tt.want...), table.Rows[0].Cells); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	s := newStore(t)
	s.mustSet(newPod("web-0", "uid-a"))
	var table metav1.Table
	s.do(http.MethodGet, "/api/v1/namespaces/default/pods", "", "Accept", acceptTable).into(t, http.StatusOK, &table)
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, strings.ToUpper(c.Name))
	}
	if diff := cmp.Diff([]string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"}, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if table.Kind != "Table" || table.APIVersion != "meta.k8s.io/v1" || len(table.Rows) != 1 || !strings.Contains(string(table.Rows[0].Object.Raw), `"PartialObjectMetadata"`) {
		t.Errorf("got %+v", table)
	}
	s.do(http.MethodGet, PodPath("default", "web-0"), "", "Accept", acceptTable).into(t, http.StatusOK, &table)
	if len(table.Rows) != 1 || table.Rows[0].Cells[1] != "2/2" {
		t.Errorf("one pod: got %+v", table.Rows)
	}
}

func TestDiscovery(t *testing.T) {
	s := newStore(t)
	var resources metav1.APIResourceList
	s.do(http.MethodGet, "/api/v1", "").into(t, http.StatusOK, &resources)
	if resources.GroupVersion != "v1" || resources.APIResources[0].Name != "pods" {
		t.Errorf("got %+v", resources)
	}
	for _, path := range []string{"/version", "/api", "/apis"} {
		s.do(http.MethodGet, path, "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json").into(t, http.StatusOK, &struct{}{})
	}
}
