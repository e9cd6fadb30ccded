// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
)

// The kubelet's own metrics go on under their names: dashboards need not change.

func countTermination(t podstatus.Termination) {
	metrics.TerminatedContainersTotal.WithLabelValues(t.Kind, strconv.Itoa(int(t.ExitCode)), t.Reason).Inc()
}

// resizes keeps the kubelet's resize metrics.
type resizes struct {
	pods       *podLookup
	conditions func(types.UID) []v1.PodCondition

	// clearing is held while a pending slot is read and emptied.
	clearing sync.Mutex
	// mu guards uids, which may have conditions, and keeps an older count from
	// overwriting a newer one.
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func (r *resizes) touched(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uids == nil {
		r.uids = make(map[types.UID]struct{})
	}
	r.uids[uid] = struct{}{}
}

// observe sets the gauges (SEMANTICS 37). Pods that the pod manager doesn't know
// are not counted as pending.
func (r *resizes) observe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	type labels struct{ reason, priority string }
	pending := make(map[labels]int)
	inProgress := 0
	for uid := range r.uids {
		conditions := r.conditions(uid)
		if len(conditions) == 0 {
			delete(r.uids, uid)
		}
		for _, c := range conditions {
			if c.Type == v1.PodResizeInProgress {
				inProgress++
			} else if pod, ok := r.pods.PodByUID(uid); ok {
				pending[labels{strings.ToLower(c.Reason), string(metrics.GetPriorityBucketLabel(pod))}]++
			}
		}
	}
	metrics.PodInProgressResizes.Set(float64(inProgress))
	metrics.PodPendingResizes.Reset()
	for l, n := range pending {
		metrics.PodPendingResizes.WithLabelValues(l.reason, l.priority).Set(float64(n))
	}
}

// ended records how long a deferred resize has waited (SEMANTICS 33).
func (r *resizes) ended(uid types.UID, resolution metrics.DeferredResizeResolution, waited time.Duration) {
	pod, _ := r.pods.PodByUID(uid)
	priority := string(metrics.GetPriorityBucketLabel(pod))
	metrics.PodDeferredResizeDurationSeconds.WithLabelValues(string(resolution), priority).Observe(waited.Seconds())
}

// hook is told of every end. Those that come with the pod's are recorded here,
// with an unknown priority, as it doesn't say which pod it was.
func (r *resizes) hook(outcome manager.ResizeOutcome, waited time.Duration) {
	if outcome == manager.ResizeTerminated {
		r.ended("", metrics.DeferredResizeResolutionTerminated, waited)
	}
}
