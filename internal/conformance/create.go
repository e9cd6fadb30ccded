// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var createCases = []testCase{
	{"GivesIdentity", func(b *bench) {
		pod := b.create("a", func(pod *corev1.Pod) { pod.UID = "wish" })
		if pod.UID == "" || pod.UID == "wish" {
			b.Errorf("UID is %q, want a new one", pod.UID)
		}
		if pod.ResourceVersion == "" || pod.CreationTimestamp.IsZero() || pod.Generation != 1 {
			b.Errorf("resourceVersion %q, creationTimestamp %v, generation %d: want both set and generation 1",
				pod.ResourceVersion, pod.CreationTimestamp, pod.Generation)
		}
		if got := b.get(pod.Name); got.UID != pod.UID || got.ResourceVersion != pod.ResourceVersion {
			b.Errorf("get says UID %s version %s, create said %s %s", got.UID, got.ResourceVersion, pod.UID, pod.ResourceVersion)
		}
	}},
	{"IgnoresStatus", func(b *bench) {
		pod := b.create("a", func(pod *corev1.Pod) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Message: "m", QOSClass: corev1.PodQOSGuaranteed}
		})
		if pod.Status.Phase != corev1.PodPending || pod.Status.Message != "" || pod.Status.QOSClass != corev1.PodQOSBestEffort {
			b.Errorf("status is %+v, want Pending and BestEffort only", pod.Status)
		}
	}},
	{"Defaults", func(b *bench) {
		spec := b.create("a").Spec
		if spec.RestartPolicy != corev1.RestartPolicyAlways || spec.TerminationGracePeriodSeconds == nil || *spec.TerminationGracePeriodSeconds != 30 {
			b.Errorf("restartPolicy %q, grace %v: want Always and 30", spec.RestartPolicy, spec.TerminationGracePeriodSeconds)
		}
		if got := spec.Containers[0].TerminationMessagePolicy; got != corev1.TerminationMessageReadFile {
			b.Errorf("termination message policy is %q, want File", got)
		}
	}},
	{"QOSClass", func(b *bench) {
		list := func(cpu, memory string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		}
		for want, resources := range map[corev1.PodQOSClass]corev1.ResourceRequirements{
			corev1.PodQOSGuaranteed: {Limits: list("1", "1Gi")},
			corev1.PodQOSBurstable:  {Requests: list("1", "1Gi")},
			corev1.PodQOSBestEffort: {},
		} {
			pod := b.create(strings.ToLower(string(want)), func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources = resources
			})
			if pod.Status.QOSClass != want {
				b.Errorf("class is %s, want %s", pod.Status.QOSClass, want)
			}
		}
	}},
	{"Twice", func(b *bench) {
		b.create("a")
		_, err := b.pods.Create(b.ctx, b.pod("a"), metav1.CreateOptions{})
		b.wantError(err, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}},
	{"GenerateName", func(b *bench) {
		pod := b.pod("gen-")
		pod.Name, pod.GenerateName = "", pod.Name
		created, err := b.pods.Create(b.ctx, pod, metav1.CreateOptions{})
		if err != nil {
			b.Fatalf("create: %v", err)
		}
		b.removeAtEnd(created.Name)
		if len(created.Name) <= len(created.GenerateName) {
			b.Errorf("name is %q, want something after %q", created.Name, created.GenerateName)
		}
	}},
	{"InvalidName", func(b *bench) {
		_, err := b.pods.Create(b.ctx, b.pod("Not_A_Name"), metav1.CreateOptions{})
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		b.wantCause(err, "metadata.name")
	}},
	{"NoContainers", func(b *bench) {
		_, err := b.pods.Create(b.ctx, b.pod("a", func(pod *corev1.Pod) { pod.Spec.Containers = nil }), metav1.CreateOptions{})
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		b.wantCause(err, "spec.containers")
	}},
	{"OtherNamespace", func(b *bench) {
		_, err := b.pods.Create(b.ctx, b.pod("a", func(pod *corev1.Pod) { pod.Namespace = "other" }), metav1.CreateOptions{})
		b.wantError(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}},
	{"UpdateLabels", func(b *bench) {
		pod := b.create("a")
		pod.Labels["more"] = "yes"
		pod.Status.Message = "ignored"
		updated, err := b.pods.Update(b.ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			b.Fatalf("update: %v", err)
		}
		if updated.Labels["more"] != "yes" || updated.Status.Message != "" || updated.Generation != 1 {
			b.Errorf("labels %v, message %q, generation %d: want the label, no message, 1", updated.Labels, updated.Status.Message, updated.Generation)
		}
		// pod still has the old version.
		_, err = b.pods.Update(b.ctx, pod, metav1.UpdateOptions{})
		b.wantError(err, http.StatusConflict, metav1.StatusReasonConflict)
	}},
	{"UpdateImage", func(b *bench) {
		pod := b.create("a")
		pod.Spec.Containers[0].Image = "registry.example/app:2"
		updated, err := b.pods.Update(b.ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			b.Fatalf("update: %v", err)
		}
		if updated.Generation != 2 {
			b.Errorf("generation is %d, want 2", updated.Generation)
		}
		updated.Spec.NodeName = "elsewhere"
		_, err = b.pods.Update(b.ctx, updated, metav1.UpdateOptions{})
		b.wantError(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		b.wantCause(err, "spec")
	}},
	{"GetMissing", func(b *bench) {
		_, err := b.pods.Get(b.ctx, b.prefix+"none", metav1.GetOptions{})
		b.wantError(err, http.StatusNotFound, metav1.StatusReasonNotFound)
	}},
}
