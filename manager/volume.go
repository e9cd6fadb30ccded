// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// SetPodVolumeHealth replaces the health conditions of one volume of a pod
// (SEMANTICS 23-27). An empty set means healthy. The same set of pairs of status
// and reason changes nothing. See SetContainerReadiness.
func (m *Manager) SetPodVolumeHealth(ctx context.Context, uid types.UID, volume string, conditions []v1.VolumeHealthCondition) (Outcome, error) {
	return m.editStatus(ctx, uid, journal.ReasonVolume, func(_ *v1.Pod, stored *v1.PodStatus) (*v1.PodStatus, bool, error) {
		status, changed := podstatus.SetVolumeHealth(stored, volume, conditions, time.Now())
		return status, changed, nil
	})
}
