// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the server refuses in a status, changes in it, or lets pass.
var statusRuleCases = []testCase{
	{"ClassIsImmutable", func(b *bench) { b.wantRefused(`{"status":{"qosClass":"Guaranteed"}}`, "status.qosClass") }},
	{"ClassIsKept", func(b *bench) {
		got := b.mustPatch(b.create("a").Name, `{"status":{"qosClass":null}}`)
		if got.Status.QOSClass != corev1.PodQOSBestEffort {
			b.Errorf("class is %q, want BestEffort", got.Status.QOSClass)
		}
	}},
	{"NegativeObservedGeneration", func(b *bench) {
		b.wantRefused(`{"status":{"observedGeneration":-1}}`, "status.observedGeneration")
	}},
	{"NegativeObservedGenerationOfCondition", func(b *bench) {
		b.wantRefused(`{"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":-1}]}}`, "status.conditions[0].observedGeneration")
	}},
	{"ObservedGenerationIsKept", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`)
		got := b.mustPatch(pod.Name, `{"status":{"observedGeneration":null,"conditions":[{"type":"Ready","status":"False","observedGeneration":null}]}}`)
		if got.Status.ObservedGeneration != 1 || got.Status.Conditions[0].ObservedGeneration != 1 {
			b.Errorf("observed generations are %d and %d, want 1 and 1", got.Status.ObservedGeneration, got.Status.Conditions[0].ObservedGeneration)
		}
	}},
	{"ConditionTypeMustBeAName", func(b *bench) {
		b.wantRefused(`{"status":{"conditions":[{"type":"no name","status":"True"}]}}`, "status.conditions[0].Type")
	}},
	{"ConditionTypeTwice", func(b *bench) {
		pod := b.create("a")
		got, err := b.patchAs(types.MergePatchType, pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}}`)
		if err != nil {
			b.Fatalf("merge patch: %v", err)
		}
		b.wantConditions(got, "Ready=True", "Ready=False")
	}},
	{"PodIPFillsPodIPs", func(b *bench) {
		got := b.mustPatch(b.create("a").Name, `{"status":{"podIP":"10.0.0.1"}}`)
		if ips := got.Status.PodIPs; len(ips) != 1 || ips[0].IP != "10.0.0.1" {
			b.Errorf("podIPs are %v, want the podIP", ips)
		}
	}},
	{"PodIPWinsOverPodIPs", func(b *bench) {
		got := b.mustPatch(b.create("a").Name, `{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.2"}]}}`)
		if ips := got.Status.PodIPs; len(ips) != 1 || ips[0].IP != "10.0.0.1" {
			b.Errorf("podIPs are %v, want the podIP", ips)
		}
	}},
	{"PodIPMustBeAnAddress", func(b *bench) { b.wantRefused(`{"status":{"podIP":"nowhere"}}`, "status.podIPs[0]") }},
	{"PodIPsOfOneFamily", func(b *bench) {
		b.wantRefused(`{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}}`, "status.podIPs")
	}},
	{"PodIPsOfTwoFamilies", func(b *bench) {
		b.mustPatch(b.create("a").Name, `{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}`)
	}},
	{"HostIPMustBeFirst", func(b *bench) {
		b.wantRefused(`{"status":{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.2"}]}}`, "status.hostIPs[0].ip")
	}},
	{"ClaimMustBeInSpec", func(b *bench) {
		b.wantRefused(`{"status":{"resourceClaimStatuses":[{"name":"none"}]}}`, "status.resourceClaimStatuses[0].name")
	}},
	{"NominatedNodeOfBoundPod", func(b *bench) {
		b.wantRefused(`{"status":{"nominatedNodeName":"n"}}`, "status.nominatedNodeName")
	}},
	{"VolumeHealthIsDropped", func(b *bench) {
		// Its feature gate is off by default. Who compares what it sent with
		// what is there must not count this as a difference.
		pod := b.create("a", func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		got := b.mustPatch(pod.Name, `{"status":{"volumeHealth":[{"name":"v"}]}}`)
		if len(got.Status.VolumeHealth) != 0 {
			b.Errorf("volumeHealth is %v, want none", got.Status.VolumeHealth)
		}
	}},
	{"UnknownPhase", func(b *bench) {
		got := b.mustPatch(b.create("a").Name, `{"status":{"phase":"Unknown"}}`)
		if got.Status.Phase != corev1.PodUnknown {
			b.Errorf("phase is %s, want Unknown", got.Status.Phase)
		}
	}},
	{"TerminalPhaseCanGoBack", func(b *bench) {
		// The server doesn't guard the phase; the syncer has to.
		pod := b.create("a", restartPolicy(corev1.RestartPolicyNever))
		b.mustPatch(pod.Name, `{"status":{"phase":"Failed"}}`)
		if got := b.mustPatch(pod.Name, `{"status":{"phase":"Running"}}`).Status.Phase; got != corev1.PodRunning {
			b.Errorf("phase is %s, want Running", got)
		}
	}},
	{"TransitionTimeIsNotTouched", func(b *bench) {
		pod := b.create("a")
		got := b.mustPatch(pod.Name, `{"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2020-01-02T03:04:05Z"}]}}`)
		want := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		if at := got.Status.Conditions[0].LastTransitionTime; !at.Time.Equal(want) {
			b.Errorf("lastTransitionTime is %v, want %v", at, want)
		}
	}},
}

// wantRefused sends a patch to a new pod and wants 422 with the field blamed
// and the pod unchanged.
func (b *bench) wantRefused(patch, field string) {
	b.Helper()
	pod := b.create("a")
	_, err := b.patch(pod.Name, patch)
	b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	b.wantCause(err, field)
	if got := b.get(pod.Name); got.ResourceVersion != pod.ResourceVersion {
		b.Errorf("resourceVersion went from %s to %s", pod.ResourceVersion, got.ResourceVersion)
	}
}
