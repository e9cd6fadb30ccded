// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// fillUp appends ordinary events until one is refused.
func fillUp(t *testing.T, j *Journal) (accepted []Event, err error) {
	t.Helper()
	for i := range 5000 {
		got, err := j.Append(t.Context(), set(types.UID(fmt.Sprint("pod-", i)), string(noise(i, 4096))))
		if err != nil {
			return accepted, err
		}
		accepted = append(accepted, got...)
	}
	t.Fatal("the file took everything")
	return nil, nil
}

// checkFull is what G10 promises of a full journal, whatever makes it full.
func checkFull(t *testing.T, j *Journal, cause error, makeRoom func()) {
	t.Helper()
	accepted, err := fillUp(t, j)
	if !errors.Is(err, ErrDegraded) || !errors.Is(err, cause) {
		t.Fatalf("got %v, want %v", err, cause)
	}
	last := accepted[len(accepted)-1]
	for range 10 {
		if _, err := j.Append(t.Context(), set("late", string(noise(1, 4096)))); !errors.Is(err, cause) {
			t.Fatalf("got %v", err)
		}
	}
	if err := j.Degraded(); !errors.Is(err, cause) {
		t.Errorf("degraded: %v", err)
	}
	if head, _ := j.Head(); head != last.Sequence {
		t.Errorf("head %d, last accepted %d", head, last.Sequence)
	}
	if got := all(t, j); got[len(got)-1].Sequence != last.Sequence {
		t.Error("a refused event is visible")
	}

	// The reserve takes what lets pods end.
	essential := 0
	for i := range 20 {
		terminal := set(accepted[i].UID, "Failed")
		terminal.Essential = true
		mustAppend(t, j, terminal, finished(accepted[i].UID, "Failed"))
		j.PutAck(Ack{UID: accepted[i].UID, LiveUID: accepted[i].UID, Version: 2})
		essential += 2
	}
	mustAppend(t, j, removed(accepted[21].UID))
	essential++
	if err := j.Flush(t.Context()); err != nil {
		t.Errorf("flush on a full disk: %v", err)
	}
	if err := j.Degraded(); err == nil {
		t.Error("an essential write hides that the disk is full")
	}

	makeRoom()
	got := mustAppend(t, j, set("late", string(noise(1, 4096))))[0]
	if got.Version != 1 || got.Sequence != last.Sequence+Sequence(essential)+1 {
		t.Errorf("after the failures: version %d sequence %d, want 1 and %d", got.Version, got.Sequence, last.Sequence+Sequence(essential)+1)
	}
	if err := j.Degraded(); err != nil {
		t.Errorf("still degraded: %v", err)
	}
	j = reopen(t, j)
	if got := len(all(t, j)); got != len(accepted)+essential+3 {
		t.Errorf("%d events after the restart, want %d", got, len(accepted)+essential+3)
	}
}

func TestG10_FileLimit(t *testing.T) {
	j := openNew(t, Options{MaxFileBytes: 4 << 20, Retention: Retention{MaxEvents: 1 << 20}})
	checkFull(t, j, syscall.EFBIG, func() {
		j.commitMu.Lock()
		j.opts.MaxFileBytes = 0
		j.commitMu.Unlock()
		// The engine knows its own limit only from when it was opened.
		j.commitMu.Lock()
		defer j.commitMu.Unlock()
		if _, err := j.reopen(); err != nil {
			t.Fatal(err)
		}
	})
}

// C45: fills a real file system.
func TestC45_DiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	j := openNewIn(t, dir, Options{Retention: Retention{MaxEvents: 1 << 20}})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFull(t, j, syscall.ENOSPC, func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	})
}

// TestG10_ReserveIsForFinishedMarks: neither the index of many pods nor their
// acks use up what finished marks need.
func TestG10_ReserveIsForFinishedMarks(t *testing.T) {
	const pods = 5000
	j := openNewIn(t, fastDir(t), Options{MaxFileBytes: 8 << 20, Retention: Retention{MaxEvents: 1 << 20}})
	var batch []Event
	for i := range pods {
		batch = append(batch, set(types.UID(fmt.Sprint("pod-", i)), "Running"))
	}
	mustAppend(t, j, batch...)
	var err error
	for i := 0; err == nil; i++ {
		_, err = j.Append(t.Context(), set("filler", string(noise(i, 4096))))
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatal(err)
	}
	for i := range pods {
		uid := types.UID(fmt.Sprint("pod-", i))
		j.PutAck(Ack{UID: uid, LiveUID: uid, Version: 1})
	}
	for i := range 400 {
		if _, err := j.Append(t.Context(), finished(types.UID(fmt.Sprint("pod-", i)), "Failed")); err != nil {
			t.Fatalf("finished mark %d: %v", i, err)
		}
		if err := j.Flush(t.Context()); err != nil {
			t.Fatalf("flush %d: %v", i, err)
		}
	}
}

// TestG10_FlushNoticesRoom: health recovers without waiting for a write.
func TestG10_FlushNoticesRoom(t *testing.T) {
	j := openNew(t, Options{})
	j.room.full, j.room.rationed, j.fault.err = syscall.ENOSPC, true, syscall.ENOSPC
	if err := j.Flush(t.Context()); err != nil || j.Degraded() != nil {
		t.Errorf("flush %v, degraded %v", err, j.Degraded())
	}
}

// TestG10_AcksAloneAreNoRecovery: a journal that has just refused a status finds
// room for acks nearly always. It is not healthy before it would take the status.
func TestG10_AcksAloneAreNoRecovery(t *testing.T) {
	j := openNewIn(t, fastDir(t), Options{MaxFileBytes: 2 << 20, Retention: Retention{MaxEvents: 1 << 20}})
	mustAppend(t, j, set("a", "Running"))
	refused := set("filler", string(noise(0, 32<<10)))
	var err error
	for range 1000 {
		if _, err = j.Append(t.Context(), refused); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("error %v, want EFBIG", err)
	}
	for version := Version(1); version < 4; version++ {
		j.PutAck(Ack{UID: "filler", LiveUID: "filler", Version: version})
		if err := j.Flush(t.Context()); err != nil {
			t.Errorf("flush: %v", err)
		}
		if j.Degraded() == nil {
			t.Fatalf("healthy after %d acks", version)
		}
		if _, err := j.Append(t.Context(), refused); !errors.Is(err, syscall.EFBIG) {
			t.Fatalf("the same status again: %v", err)
		}
	}
	if acks, err := j.Acks(); err != nil || acks["filler"].Version != 3 {
		t.Errorf("acks %v, %v", acks, err)
	}
}
