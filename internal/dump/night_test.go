// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
)

// nightFall is when the night of the examples begins.
var nightFall = time.Date(2026, 1, 31, 2, 40, 0, 0, time.UTC)

// night is the journal of the documentation's examples, the same to the
// nanosecond each time: pods that start, one whose readiness flaps, an
// out-of-memory kill, an agent that is killed, an update that comes too late and is
// refused, acks that are behind.
func night(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), journal.FileName)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(nightFall))
		first := filepath.Join(t.TempDir(), journal.FileName)
		w := openWriter(t, first)
		after := func(d time.Duration, write func()) { time.Sleep(d); write() }
		starting := unreadyStatus("app")
		starting.Phase = v1.PodPending
		after(time.Minute, func() { w.set("web-0", starting) })
		after(20*time.Second, func() { w.set("cache-0", running("app")) })
		after(40*time.Second, func() { w.set("web-0", running("app")) })
		for range 3 { // it flaps
			after(2*time.Minute, func() { w.add("cache-0", journal.KindSet, journal.ReasonReadiness, unreadyStatus("app")) })
			after(30*time.Second, func() { w.add("cache-0", journal.KindSet, journal.ReasonReadiness, running("app")) })
		}
		after(time.Minute, func() { w.set("job-7", running("app")) })
		after(9*time.Minute, func() { w.add("web-0", journal.KindSet, journal.ReasonReadiness, unreadyStatus("app")) })
		after(time.Second, func() { w.ack("web-0", 3); w.ack("cache-0", 7); w.ack("job-7", 1) })
		after(50*time.Second, func() { w.set("web-0", restarted(1, 137, "OOMKilled")) })
		// The agent is killed: what is on the disk goes on under a new one.
		if err := os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(first))); err != nil {
			t.Fatal(err)
		}
		w.close()
		time.Sleep(3 * time.Minute)
		w = openWriter(t, path)
		after(11*time.Second, func() { w.set("job-7", failed(1)) })
		after(10*time.Second, func() { w.refuse("job-7", v1.RestartPolicyOnFailure, failed(1), running("app")) })
		after(110*time.Second, func() { w.add("job-7", journal.KindRemoved, journal.ReasonOrphaned, nil) })
		w.close()
	})
	return path
}
