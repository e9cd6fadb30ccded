// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var deleteCases = []testCase{
	{"BoundPodStays", func(b *bench) {
		pod := b.create("a", func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = new(int64(45)) })
		before := time.Now()
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		got := b.get(pod.Name)
		b.wantGrace(got, 45)
		// Both clocks count whole seconds.
		if left := got.DeletionTimestamp.Sub(before); left < 43*time.Second || left > 75*time.Second {
			b.Errorf("deletion is due in %v, want about 45s", left)
		}
		if got.Generation != 2 || got.Status.Phase != corev1.PodPending {
			b.Errorf("generation %d, phase %s: want 2, Pending", got.Generation, got.Status.Phase)
		}
	}},
	{"SecondOnlyShortens", func(b *bench) {
		pod := b.create("a")
		b.mustDelete(pod.Name, grace(30))
		first := b.get(pod.Name)
		b.mustDelete(pod.Name, grace(60))
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		if got := b.get(pod.Name); got.ResourceVersion != first.ResourceVersion {
			b.Errorf("resourceVersion went from %s to %s", first.ResourceVersion, got.ResourceVersion)
		}
		b.mustDelete(pod.Name, grace(10))
		got := b.get(pod.Name)
		b.wantGrace(got, 10)
		if !got.DeletionTimestamp.Before(first.DeletionTimestamp) || got.Generation != first.Generation {
			b.Errorf("deletion at %v, generation %d: want before %v, %d", got.DeletionTimestamp, got.Generation, first.DeletionTimestamp, first.Generation)
		}
	}},
	{"GraceZeroRemoves", func(b *bench) {
		pod := b.create("a")
		b.mustDelete(pod.Name, grace(0))
		b.wantGone(pod.Name)
	}},
	{"GraceZeroAfterGraceful", func(b *bench) {
		pod := b.create("a")
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		b.mustPatch(pod.Name, `{"status":{"phase":"Failed"}}`)
		options := grace(0)
		options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
		b.mustDelete(pod.Name, options)
		b.wantGone(pod.Name)
	}},
	{"TerminalPodGoesAtOnce", func(b *bench) {
		for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
			pod := b.create("a")
			b.mustPatch(pod.Name, fmt.Sprintf(`{"status":{"phase":%q}}`, phase))
			b.mustDelete(pod.Name, grace(30))
			b.wantGone(pod.Name)
		}
	}},
	{"TerminalAfterDeletionStays", func(b *bench) {
		pod := b.create("a")
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		b.mustPatch(pod.Name, `{"status":{"phase":"Failed"}}`)
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		b.wantGrace(b.get(pod.Name), 30)
	}},
	{"UnboundPodGoesAtOnce", func(b *bench) {
		pod := b.create("a", unbound)
		b.mustDelete(pod.Name, grace(30))
		b.wantGone(pod.Name)
	}},
	{"OtherUID", func(b *bench) {
		pod := b.create("a")
		options := grace(0)
		options.Preconditions = &metav1.Preconditions{UID: new(types.UID("other"))}
		b.wantError(b.pods.Delete(b.ctx, pod.Name, options), http.StatusConflict, metav1.StatusReasonConflict)
		b.get(pod.Name)
	}},
	{"OldVersion", func(b *bench) {
		pod := b.create("a")
		b.mustPatch(pod.Name, `{"status":{"message":"m"}}`)
		options := grace(0)
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}
		b.wantError(b.pods.Delete(b.ctx, pod.Name, options), http.StatusConflict, metav1.StatusReasonConflict)
		b.get(pod.Name)
	}},
	{"MissingPod", func(b *bench) {
		options := grace(0)
		options.Preconditions = &metav1.Preconditions{UID: new(types.UID("other"))}
		err := b.pods.Delete(b.ctx, b.prefix+"none", options)
		b.wantError(err, http.StatusNotFound, metav1.StatusReasonNotFound)
	}},
	{"StatusOfDeletedPod", func(b *bench) {
		pod := b.create("a")
		b.mustDelete(pod.Name, metav1.DeleteOptions{})
		got := b.mustPatch(pod.Name, `{"metadata":{"deletionTimestamp":null},"status":{"phase":"Running"}}`)
		if got.DeletionTimestamp == nil || got.Status.Phase != corev1.PodRunning {
			b.Errorf("deletionTimestamp %v, phase %s: want kept, Running", got.DeletionTimestamp, got.Status.Phase)
		}
	}},
	{"FinalizerHolds", func(b *bench) {
		pod := b.create("a", func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
		b.mustDelete(pod.Name, grace(0))
		held := b.get(pod.Name)
		b.wantGrace(held, 0)
		held.Finalizers = nil
		if _, err := b.pods.Update(b.ctx, held, metav1.UpdateOptions{}); err != nil {
			b.Fatalf("remove the finalizer: %v", err)
		}
		b.wantGone(pod.Name)
	}},
	{"NewPodOfThatName", func(b *bench) {
		old := b.create("a")
		_, err := b.pods.Create(b.ctx, b.pod("a"), metav1.CreateOptions{})
		b.wantError(err, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		b.mustDelete(old.Name, grace(0))
		if pod := b.create("a"); pod.UID == old.UID {
			b.Errorf("new pod has the old UID %s", pod.UID)
		}
	}},
	{"Collection", func(b *bench) {
		b.create("a")
		b.create("b")
		kept := b.create("c", func(pod *corev1.Pod) { pod.Labels["keep"] = "yes" })
		err := b.pods.DeleteCollection(b.ctx, grace(0), metav1.ListOptions{LabelSelector: "conformance=" + kept.Labels["conformance"] + ",!keep"})
		if err != nil {
			b.Fatalf("delete collection: %v", err)
		}
		b.wantGone(b.prefix + "a")
		b.wantGone(b.prefix + "b")
		b.get(kept.Name)
	}},
}

func grace(seconds int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: &seconds}
}

func (b *bench) mustDelete(name string, options metav1.DeleteOptions) {
	b.Helper()
	if err := b.pods.Delete(b.ctx, name, options); err != nil {
		b.Fatalf("delete pod: %v", err)
	}
}

func (b *bench) wantGrace(pod *corev1.Pod, seconds int64) {
	b.Helper()
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != seconds {
		b.Errorf("deletionTimestamp %v, deletionGracePeriodSeconds %v: want set, %d", pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, seconds)
	}
}

func (b *bench) wantGone(name string) {
	b.Helper()
	if _, err := b.pods.Get(b.ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.Errorf("pod is still there (error %v)", err)
	}
}
