// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// sparse makes a closed journal whose file is mostly free pages, and returns
// the newest event of each pod.
func sparse(t *testing.T) (path string, want map[types.UID]Event) {
	t.Helper()
	path = filepath.Join(t.TempDir(), FileName)
	j, err := Open(path, Options{Retention: Retention{MaxEvents: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		var batch []Event
		for i := range 1000 {
			batch = append(batch, set(types.UID(fmt.Sprint("pod-", i%50)), string(noise(i, 2000))))
		}
		mustAppend(t, j, batch...)
	}
	j.PutAck(Ack{UID: "pod-1", LiveUID: "pod-1", Version: 3})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = Open(path, Options{Retention: Retention{MaxEvents: 100}})
	if err != nil {
		t.Fatal(err)
	}
	for s, _ := j.Stats(); s.Events > 120; s, _ = j.Stats() {
		mustAppend(t, j, set("pod-0", "trim"))
	}
	want = newest(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path, want
}

// noise is bytes that do not compress.
func noise(seed, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed*2654435761 + 1)
	for k := range b {
		x = x*1664525 + 1013904223
		b[k] = byte(x >> 24)
	}
	return b
}

// C46: the file only grows.
func TestC46_CompactionAtOpen(t *testing.T) {
	path, want := sparse(t)
	before, _ := os.Stat(path)
	j := open(t, path, Options{})
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if before.Size() < compactMinBytes || after.Size() > before.Size()/4 {
		t.Errorf("%d bytes before, %d after", before.Size(), after.Size())
	}
	if diff := cmp.Diff(want, newest(t, j)); diff != "" {
		t.Error(diff)
	}
	if acks, _ := j.Acks(); acks["pod-1"].Version != 3 {
		t.Errorf("acks %+v", acks)
	}
	if after.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", after.Mode())
	}
	if got := mustAppend(t, j, set("pod-1", "next"))[0]; got.Version != want["pod-1"].Version+1 {
		t.Errorf("version %d", got.Version)
	}
}

// C50: a kill leaves the old or the new file, complete, and
// at most one temporary file, which the next open removes.
func TestC50_KilledCompaction(t *testing.T) {
	path, want := sparse(t)
	stranger := filepath.Join(filepath.Dir(path), "journal.db.backup")
	if err := os.WriteFile(stranger, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	interrupted := 0
	for round := range 10 {
		if err := os.WriteFile(path, original, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := childCommand(path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// From the moment the temporary file appears, kill ever later.
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if temps, _ := filepath.Glob(path + compactingSuffix + "*"); len(temps) > 0 {
				break
			}
		}
		time.Sleep(time.Duration(round*round) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		temps, _ := filepath.Glob(path + compactingSuffix + "*")
		if len(temps) > 1 {
			t.Errorf("round %d: temporary files %v", round, temps)
		}
		interrupted += len(temps)
		verify(t, path)
	}
	if interrupted == 0 {
		t.Error("no kill hit the compaction")
	}
	j := open(t, path, Options{})
	for uid, e := range newest(t, j) {
		if e.Version < want[uid].Version {
			t.Errorf("%s has version %d, want at least %d", uid, e.Version, want[uid].Version)
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 3 {
		t.Errorf("directory holds %v", got)
	}
}

func TestCompactToAnotherFile(t *testing.T) {
	path, want := sparse(t)
	before := digest(path)
	out := filepath.Join(t.TempDir(), "out.db")
	got, err := Compact(t.Context(), path, out)
	if err != nil || got.After >= got.Before/4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if digest(path) != before {
		t.Error("the source changed")
	}
	if _, err := Compact(t.Context(), path, out); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	if diff := cmp.Diff(want, newest(t, open(t, out, Options{}))); diff != "" {
		t.Error(diff)
	}
}

// TestCompactFits: a copy is no larger than what is in it, however small that is.
func TestCompactFits(t *testing.T) {
	for _, n := range []int{2, 300, 5000} {
		path := filled(t, n)
		j, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		tight := filepath.Join(t.TempDir(), "tight")
		if err := errors.Join(j.Snapshot(t.Context(), tight), j.Close()); err != nil {
			t.Fatal(err)
		}
		result, err := Compact(t.Context(), tight, tight+".compacted")
		if err != nil {
			t.Fatal(err)
		}
		if result.After > result.Before {
			t.Errorf("%d events: %d bytes are compacted to %d", n, result.Before, result.After)
		}
		_, salvaged := salvage(t, tight)
		if info, err := os.Stat(salvaged); err != nil || info.Size() > 2*result.Before {
			t.Errorf("%d events: %d bytes are salvaged to %v, %v", n, result.Before, info.Size(), err)
		}
	}
}
