// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
)

func TestMain(m *testing.M) {
	metrics.Register()
	goleak.VerifyTestMain(m,
		// The stock manager's loop cannot be ended.
		goleak.IgnoreAnyFunction("k8s.io/kubernetes/pkg/kubelet/status.(*manager).Start.func1"),
	)
}
