// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// podColumns are those that kubectl shows for pods; from priority 1 on only with
// -o wide.
var podColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the pod."},
	{Name: "Ready", Type: "string", Description: "Containers that are ready, of all."},
	{Name: "Status", Type: "string", Description: "What the pod is doing, in one word."},
	{Name: "Restarts", Type: "string", Description: "How often containers were restarted, and when last."},
	{Name: "Age", Type: "string", Description: "Time since the pod was created."},
	{Name: "IP", Type: "string", Priority: 1, Description: "IP of the pod."},
	{Name: "Node", Type: "string", Priority: 1, Description: "Node that runs the pod."},
	{Name: "Nominated Node", Type: "string", Priority: 1, Description: "Node that the scheduler makes room on."},
	{Name: "Readiness Gates", Type: "string", Priority: 1, Description: "Gates that are open, of all."},
}

// podTable is a table of pods.
type podTable struct {
	*metav1.Table
	objects metav1.IncludeObjectPolicy
	now     time.Time
}

func newTable(version string, o listOptions) podTable {
	return podTable{&metav1.Table{
		TypeMeta:          metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta:          metav1.ListMeta{ResourceVersion: version},
		ColumnDefinitions: podColumns, Rows: []metav1.TableRow{},
	}, o.tableObjects, time.Now()}
}

func (t podTable) add(pod *v1.Pod) {
	total, ready := len(pod.Spec.Containers), 0
	for _, c := range append(restartableInit(pod), pod.Status.ContainerStatuses...) {
		if c.Ready && c.State.Running != nil {
			ready++
		}
	}
	total += countRestartableInit(pod)
	total = max(total, len(pod.Status.ContainerStatuses)) // the spec may be unknown
	t.row(pod,
		pod.Name, fmt.Sprintf("%d/%d", ready, total), summary(pod), restarts(pod, t.now), age(pod.CreationTimestamp, t.now),
		orNone(pod.Status.PodIP), orNone(pod.Spec.NodeName), orNone(pod.Status.NominatedNodeName), gates(pod))
}

// addBare adds a row without values, for bookmarks.
func (t podTable) addBare(pod *v1.Pod) { t.row(pod, make([]any, len(podColumns))...) }

func (t podTable) row(pod *v1.Pod, cells ...any) {
	row := metav1.TableRow{Cells: cells}
	switch t.objects {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object = runtime.RawExtension{Object: pod}
	default:
		row.Object = runtime.RawExtension{Object: &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: metav1.SchemeGroupVersion.String()},
			ObjectMeta: pod.ObjectMeta,
		}}
	}
	t.Rows = append(t.Rows, row)
}

// summary is the word in the column Status: the phase, or what says more.
func summary(pod *v1.Pod) string {
	word := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		word = pod.Status.Reason
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Reason == v1.PodReasonSchedulingGated {
			word = v1.PodReasonSchedulingGated
		}
	}
	if initializing := initSummary(pod); initializing != "" {
		word = initializing
	} else {
		word = containerSummary(pod, word)
	}
	if pod.DeletionTimestamp != nil {
		switch {
		case pod.Status.Reason == "NodeLost":
			word = "Unknown"
		case pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed:
			word = "Terminating"
		}
	}
	if word == "" {
		word = "Unknown"
	}
	return word
}

// initSummary is what the first init container that is not through does; empty if
// all are.
func initSummary(pod *v1.Pod) string {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return ""
	}
	total := max(len(pod.Spec.InitContainers), len(pod.Status.InitContainerStatuses))
	for i, c := range pod.Status.InitContainerStatuses {
		switch state := c.State; {
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
		case isRestartableInit(pod, c.Name) && c.Started != nil && *c.Started:
		case state.Terminated != nil:
			return "Init:" + ended(state.Terminated)
		case state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing":
			return "Init:" + state.Waiting.Reason
		default:
			return fmt.Sprintf("Init:%d/%d", i, total)
		}
	}
	return ""
}

// containerSummary is what the first container with something to tell does.
func containerSummary(pod *v1.Pod, word string) string {
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		switch c := pod.Status.ContainerStatuses[i]; {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			word = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			word = ended(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
		}
	}
	if word != "Completed" || !running {
		return word
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			return "Running"
		}
	}
	return "NotReady"
}

func ended(t *v1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return "Signal:" + strconv.Itoa(int(t.Signal))
	default:
		return "ExitCode:" + strconv.Itoa(int(t.ExitCode))
	}
}

// restarts counts the restarts of the containers that go on, and tells when the
// last one was.
func restarts(pod *v1.Pod, now time.Time) string {
	count := int32(0)
	var last time.Time
	for _, c := range append(restartableInit(pod), pod.Status.ContainerStatuses...) {
		count += c.RestartCount
		if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	if initSummary(pod) != "" {
		count = 0
		for _, c := range pod.Status.InitContainerStatuses {
			count += c.RestartCount
			if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	if count == 0 || last.IsZero() {
		return strconv.Itoa(int(count))
	}
	return fmt.Sprintf("%d (%s ago)", count, duration.HumanDuration(now.Sub(last)))
}

func isRestartableInit(pod *v1.Pod, name string) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
	}
	return false
}

func restartableInit(pod *v1.Pod) []v1.ContainerStatus {
	var found []v1.ContainerStatus
	for _, c := range pod.Status.InitContainerStatuses {
		if isRestartableInit(pod, c.Name) {
			found = append(found, c)
		}
	}
	return found
}

func countRestartableInit(pod *v1.Pod) int {
	n := 0
	for _, c := range pod.Spec.InitContainers {
		if isRestartableInit(pod, c.Name) {
			n++
		}
	}
	return n
}

func age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

func gates(pod *v1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return "<none>"
	}
	open := 0
	for _, gate := range pod.Spec.ReadinessGates {
		for _, c := range pod.Status.Conditions {
			if c.Type == gate.ConditionType && c.Status == v1.ConditionTrue {
				open++
				break
			}
		}
	}
	return fmt.Sprintf("%d/%d", open, len(pod.Spec.ReadinessGates))
}

func orNone(s string) string {
	if strings.TrimSpace(s) == "" {
		return "<none>"
	}
	return s
}
