// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"os"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
)

// TestG1_FaultReadersSeeOnlyDurable holds the sync of a commit's meta page: the
// engine already shows the commit to new readers, and a power cut would still
// undo it. Nobody may see it before.
func TestG1_FaultReadersSeeOnlyDurable(t *testing.T) {
	if os.Getenv(childEnv) != "fault" {
		if _, skipped := inChild(t, "fault"); skipped != "" {
			t.Skip(skipped)
		}
		return
	}
	i := inject(t)
	path := t.TempDir() + "/" + journal.FileName
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	before, err := j.Append(t.Context(), pod("a", journal.KindSet, 100))
	if err != nil {
		t.Fatal(err)
	}
	held, release := make(chan struct{}), make(chan struct{})
	syncs := 0
	i.onCall(func(c crash.Call) {
		if c.Name == crash.Fdatasync {
			if syncs++; syncs == 2 {
				close(held)
				<-release
			}
		}
	})
	done := make(chan error)
	go func() {
		_, err := j.Append(t.Context(), pod("a", journal.KindSet, 100))
		done <- err
	}()
	select {
	case <-held:
	case <-time.After(time.Minute):
		t.Fatal("the commit does not get to its second sync")
	}
	head := before[0].Sequence
	if got, _ := j.Head(); got != head {
		t.Errorf("Head is %d", got)
	}
	for e, err := range j.Events(1, 0) {
		if err != nil || e.Sequence > head {
			t.Errorf("Events yields %d, %v; durable is %d", e.Sequence, err, head)
		}
	}
	for e, err := range j.Newest() {
		if err != nil || e.Sequence > head {
			t.Errorf("Newest yields %d, %v; durable is %d", e.Sequence, err, head)
		}
	}
	if s, err := j.Stats(); err != nil || s.Head != head {
		t.Errorf("Stats say head %d, %v; durable is %d", s.Head, err, head)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, _ := j.Head(); got != head+1 {
		t.Errorf("Head is %d after the commit", got)
	}
}
