// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which pods a LIST, WATCH or collection DELETE is about.
type selection struct {
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// podFields are the field labels that may be selected by, as of 1.37.
var podFields = map[string]func(*corev1.Pod) string{
	"metadata.name":            func(p *corev1.Pod) string { return p.Name },
	"metadata.namespace":       func(p *corev1.Pod) string { return p.Namespace },
	"spec.nodeName":            func(p *corev1.Pod) string { return p.Spec.NodeName },
	"spec.restartPolicy":       func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) },
	"spec.schedulerName":       func(p *corev1.Pod) string { return p.Spec.SchedulerName },
	"spec.serviceAccountName":  func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
	"spec.hostNetwork":         func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) },
	"status.phase":             func(p *corev1.Pod) string { return string(p.Status.Phase) },
	"status.podIP":             func(p *corev1.Pod) string { return p.Status.PodIP },
	"status.nominatedNodeName": func(p *corev1.Pod) string { return p.Status.NominatedNodeName },
}

func newSelection(namespace, labelSelector, fieldSelector string) (selection, error) {
	sel := selection{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	var err error
	if labelSelector != "" {
		if sel.labels, err = labels.Parse(labelSelector); err != nil {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("label selector: %v", err))
		}
	}
	if fieldSelector != "" {
		if sel.fields, err = fields.ParseSelector(fieldSelector); err != nil {
			return sel, apierrors.NewBadRequest(fmt.Sprintf("field selector: %v", err))
		}
		for _, term := range sel.fields.Requirements() {
			if podFields[term.Field] == nil {
				return sel, apierrors.NewBadRequest("field label not supported: " + term.Field)
			}
		}
	}
	return sel, nil
}

// Has and Get make a pod the fields.Fields that selectors look into.
type selectable struct{ pod *corev1.Pod }

var _ fields.Fields = selectable{}

func (s selectable) Has(field string) bool { return podFields[field] != nil }

func (s selectable) Get(field string) string {
	if read := podFields[field]; read != nil {
		return read(s.pod)
	}
	return ""
}

func (sel selection) matches(pod *corev1.Pod) bool {
	return pod != nil &&
		(sel.namespace == "" || sel.namespace == pod.Namespace) &&
		sel.fields.Matches(selectable{pod}) &&
		sel.labels.Matches(labels.Set(pod.Labels))
}

// selects says whether the selection is by more than the namespace.
func (sel selection) selects() bool { return !sel.labels.Empty() || !sel.fields.Empty() }

func selectPods(pods iter.Seq[*corev1.Pod], sel selection) []*corev1.Pod {
	var selected []*corev1.Pod
	for pod := range pods {
		if sel.matches(pod) {
			selected = append(selected, pod)
		}
	}
	slices.SortFunc(selected, func(a, b *corev1.Pod) int { return keyOf(a).compare(keyOf(b)) })
	return selected
}
