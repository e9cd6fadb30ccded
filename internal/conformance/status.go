// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// How the status subresource takes writes.
var statusCases = []testCase{
	{"PatchChangesStatusOnly", func(b *bench) {
		pod := b.create("a")
		got := b.mustPatch(pod.Name, `{"spec":{"nodeName":"elsewhere"},"status":{"phase":"Running","message":"m"}}`)
		if got.Status.Phase != corev1.PodRunning || got.Status.Message != "m" {
			b.Errorf("phase %s, message %q: want Running, m", got.Status.Phase, got.Status.Message)
		}
		if got.Spec.NodeName != b.target.Node || got.Generation != 1 || got.UID != pod.UID {
			b.Errorf("node %q, generation %d: want both unchanged", got.Spec.NodeName, got.Generation)
		}
		if got.ResourceVersion == pod.ResourceVersion {
			b.Errorf("resourceVersion is still %s", got.ResourceVersion)
		}
	}},
	{"PatchWithUID", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running"}}`, pod.UID))
	}},
	{"PatchWithOtherUID", func(b *bench) {
		pod := b.create("a")
		_, err := b.patch(pod.Name, `{"metadata":{"uid":"other"},"status":{"phase":"Running"}}`)
		// Not 409: to the server this is a change of an immutable field.
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		b.wantCause(err, "metadata.uid")
		if got := b.get(pod.Name).Status.Phase; got != corev1.PodPending {
			b.Errorf("phase is %s, want Pending", got)
		}
	}},
	{"PatchMissingPod", func(b *bench) {
		_, err := b.patch(b.prefix+"none", `{"metadata":{"uid":"other"},"status":{"phase":"Running"}}`)
		b.wantError(err, http.StatusNotFound, metav1.StatusReasonNotFound)
	}},
	{"PatchWithOldVersion", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"m"}}`)
		patch := `{"metadata":{"uid":%q,"resourceVersion":%q},"status":{"phase":"Running"}}`
		_, err := b.patch(pod.Name, fmt.Sprintf(patch, pod.UID, pod.ResourceVersion))
		b.wantError(err, http.StatusConflict, metav1.StatusReasonConflict)
		// The version is looked at before the UID.
		_, err = b.patch(pod.Name, fmt.Sprintf(patch, "other", pod.ResourceVersion))
		b.wantError(err, http.StatusConflict, metav1.StatusReasonConflict)
	}},
	{"PatchWithNewVersion", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"phase":"Running"}}`, pod.ResourceVersion))
	}},
	{"PatchOtherName", func(b *bench) {
		_, err := b.patch(b.create("a").Name, `{"metadata":{"name":"other"},"status":{"phase":"Running"}}`)
		b.wantError(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}},
	{"PatchWithoutEffect", func(b *bench) {
		pod := b.mustPatch(b.create("a").Name, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		again := b.mustPatch(pod.Name, fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, pod.UID))
		if again.ResourceVersion != pod.ResourceVersion {
			b.Errorf("resourceVersion went from %s to %s", pod.ResourceVersion, again.ResourceVersion)
		}
	}},
	{"PatchLabels", func(b *bench) {
		pod := b.create("a")
		got := b.mustPatch(pod.Name, `{"metadata":{"labels":{"through":"status"},"annotations":{"through":"status"}}}`)
		if got.Labels["through"] != "status" || got.Annotations["through"] != "status" || got.Labels["conformance"] == "" {
			b.Errorf("labels %v, annotations %v: want the new beside the old", got.Labels, got.Annotations)
		}
	}},
	{"PatchConditionsByType", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"example.com/gate","status":"True","reason":"R"}]}}`)
		b.mustPatch(pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
		got := b.mustPatch(pod.Name, `{"status":{"$setElementOrder/conditions":[{"type":"Initialized"},{"type":"Ready"},{"type":"example.com/gate"}],"conditions":[{"type":"Initialized","status":"True"}]}}`)
		b.wantConditions(got, "Initialized=True", "Ready=False", "example.com/gate=True")
		got = b.mustPatch(pod.Name, `{"status":{"conditions":[{"type":"Ready","$patch":"delete"}]}}`)
		b.wantConditions(got, "Initialized=True", "example.com/gate=True")
	}},
	{"PatchReplacesContainerStatuses", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"containerStatuses":[{"name":"app","image":"i","imageID":"","ready":true,"restartCount":1},{"name":"side","image":"i","imageID":"","ready":true,"restartCount":1}]}}`)
		got := b.mustPatch(pod.Name, `{"status":{"containerStatuses":[{"name":"app","image":"i","imageID":"","ready":false,"restartCount":2}]}}`)
		if n := len(got.Status.ContainerStatuses); n != 1 {
			b.Fatalf("%d container statuses, want 1: the list is atomic", n)
		}
		if status := got.Status.ContainerStatuses[0]; status.Ready || status.RestartCount != 2 {
			b.Errorf("ready %v, restartCount %d: want false, 2", status.Ready, status.RestartCount)
		}
	}},
	{"PatchRemovesFields", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"m","hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.1"}],"startTime":"2026-01-02T03:04:05Z"}}`)
		got := b.mustPatch(pod.Name, `{"status":{"message":null,"hostIP":null,"hostIPs":null,"startTime":null}}`)
		if s := got.Status; s.Message != "" || s.HostIP != "" || len(s.HostIPs) != 0 || s.StartTime != nil {
			b.Errorf("message %q, hostIP %q, hostIPs %v, startTime %v: want none", s.Message, s.HostIP, s.HostIPs, s.StartTime)
		}
	}},
	{"PatchCutsFractionsOfSeconds", func(b *bench) {
		got := b.mustPatch(b.create("a").Name, `{"status":{"startTime":"2026-01-02T03:04:05.999999999Z"}}`)
		if got.Status.StartTime == nil || got.Status.StartTime.UTC().Format("15:04:05.000") != "03:04:05.000" {
			b.Errorf("startTime is %v", got.Status.StartTime)
		}
	}},
	{"PatchBetweenTwoStatuses", func(b *bench) {
		// As the syncer makes its patches: from what the server has to what
		// it should have, whatever the lists' merge rules are.
		live := b.mustPatch(b.create("a").Name, `{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"hostIP":"10.1.0.1","hostIPs":[{"ip":"10.1.0.1"}],"conditions":[{"type":"A","status":"True"},{"type":"B","status":"True"},{"type":"C","status":"True"}]}}`)
		desired := live.DeepCopy()
		desired.Status.PodIP, desired.Status.PodIPs = "10.0.0.2", []corev1.PodIP{{IP: "10.0.0.2"}, {IP: "fd00::1"}}
		desired.Status.HostIP, desired.Status.HostIPs = "10.1.0.2", []corev1.HostIP{{IP: "10.1.0.2"}}
		desired.Status.Conditions = []corev1.PodCondition{
			{Type: "C", Status: corev1.ConditionFalse}, {Type: "D", Status: corev1.ConditionTrue}, {Type: "A", Status: corev1.ConditionTrue},
		}
		got := b.mustPatch(live.Name, b.difference(live, desired))
		if diff := cmp.Diff(desired.Status, got.Status); diff != "" {
			b.Errorf("desired (-) and stored (+) status differ:\n%s", diff)
		}
	}},
	{"MergePatch", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"},{"type":"Initialized","status":"True"}]}}`)
		got, err := b.patchAs(types.MergePatchType, pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
		if err != nil {
			b.Fatalf("merge patch: %v", err)
		}
		b.wantConditions(got, "Ready=False")
		if got.Status.Phase != corev1.PodRunning {
			b.Errorf("phase is %s, want Running", got.Status.Phase)
		}
	}},
	{"JSONPatch", func(b *bench) {
		pod := b.create("a")
		got, err := b.patchAs(types.JSONPatchType, pod.Name, `[{"op":"test","path":"/status/phase","value":"Pending"},{"op":"replace","path":"/status/phase","value":"Running"}]`)
		if err != nil || got.Status.Phase != corev1.PodRunning {
			b.Fatalf("JSON patch: phase %v, error %v", got.Status.Phase, err)
		}
		_, err = b.patchAs(types.JSONPatchType, pod.Name, `[{"op":"test","path":"/status/phase","value":"Pending"}]`)
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}},
	{"MalformedPatch", func(b *bench) {
		pod := b.create("a")
		for _, patchType := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType} {
			_, err := b.patchAs(patchType, pod.Name, `{"status":`)
			b.wantError(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		}
		_, err := b.patch(pod.Name, `{"status":{"phase":7}}`)
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		_, err = b.patchAs("text/plain", pod.Name, `{}`)
		b.wantError(err, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType)
	}},
	{"Update", func(b *bench) {
		pod := b.create("a")
		pod.ResourceVersion = ""
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning}
		pod.Spec.NodeName = "elsewhere"
		got, err := b.pods.UpdateStatus(b.ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			b.Fatalf("update status: %v", err)
		}
		if got.Status.Phase != corev1.PodRunning || got.Status.QOSClass != corev1.PodQOSBestEffort || got.Spec.NodeName != b.target.Node {
			b.Errorf("phase %s, class %s, node %s: want Running, the old class, the old node", got.Status.Phase, got.Status.QOSClass, got.Spec.NodeName)
		}
	}},
	{"UpdateWithOldVersion", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"m"}}`)
		_, err := b.pods.UpdateStatus(b.ctx, pod, metav1.UpdateOptions{})
		b.wantError(err, http.StatusConflict, metav1.StatusReasonConflict)
	}},
	{"UpdateWithOtherUID", func(b *bench) {
		pod := b.create("a")
		pod.UID, pod.ResourceVersion = "other", ""
		_, err := b.pods.UpdateStatus(b.ctx, pod, metav1.UpdateOptions{})
		b.wantError(err, http.StatusConflict, metav1.StatusReasonConflict)
	}},
}

func (b *bench) wantConditions(pod *corev1.Pod, want ...string) {
	b.Helper()
	var got []string
	for _, condition := range pod.Status.Conditions {
		got = append(got, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("conditions are %v, want %v", got, want)
	}
}

// difference is the strategic merge patch between two pods.
func (b *bench) difference(from, to *corev1.Pod) string {
	b.Helper()
	var documents [2][]byte
	for i, pod := range []*corev1.Pod{from, to} {
		document, err := json.Marshal(pod)
		if err != nil {
			b.Fatalf("encode pod: %v", err)
		}
		documents[i] = document
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(documents[0], documents[1], corev1.Pod{})
	if err != nil {
		b.Fatalf("make patch: %v", err)
	}
	return string(patch)
}
