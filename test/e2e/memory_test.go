// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// maxRSS is what an agent with 500 pods may take, in KiB.
const maxRSS = 60 << 10

// TestMemory_FiveHundredPods reads the agent's resident memory from the kernel:
// after a burst in which each pod changes several times, and after a restart.
func TestMemory_FiveHundredPods(t *testing.T) {
	const n = 500
	ns := createNamespace(t, "memory")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	a.start(t)
	t.Logf("started with %d pods on the server: %v", n, a.memory(t))
	begin := time.Now()
	for change := range 4 {
		inParallel(t, n, func(i int) error {
			_, err := a.client.set(withStatus(pods[i], running(pods[i], fmt.Sprintf("change %d", change))))
			return err
		})
	}
	accepted := time.Since(begin)
	a.waitAcked(t, n)
	t.Logf("%d statuses accepted in %.1fs, all acked after %.1fs", 4*n, accepted.Seconds(), time.Since(begin).Seconds())
	report := func(when string) {
		t.Helper()
		m := a.memory(t)
		t.Logf("%s: %v", when, m)
		if m.rss > maxRSS {
			t.Errorf("%s: %v, want at most %d MiB", when, m, maxRSS>>10)
		}
	}
	report("right after the burst")
	quiet(t, 1)
	report("a pass later")
	a.kill(t)
	a.start(t)
	a.waitAcked(t, n)
	report("after a restart")
}
