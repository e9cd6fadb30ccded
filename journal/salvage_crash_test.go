// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestSalvageAfterTornCommit: a crash in the middle of a commit leaves good
// records of events that were never accepted, whose sequences are used again.
func TestSalvageAfterTornCommit(t *testing.T) {
	j := openNew(t, Options{})
	for i := range 20 {
		mustAppend(t, j, set("a", marker(i)), set("b", marker(100+i)))
	}
	before, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	var lost []Event
	for i := range 30 {
		lost = append(lost, set("a", "never accepted "+marker(200+i)))
	}
	mustAppend(t, j, lost...)
	after, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	// The image: all new data pages, the old meta pages.
	crashed := filepath.Join(t.TempDir(), FileName)
	image := append(bytes.Clone(before[:8192]), after[8192:]...)
	if err := os.WriteFile(crashed, image, 0o600); err != nil {
		t.Fatal(err)
	}
	k := open(t, crashed, Options{})
	mustAppend(t, k, set("a", "accepted"), set("b", "accepted"))
	want := newest(t, k)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	_, out := salvage(t, crashed)
	got := newest(t, open(t, out, Options{}))
	for uid, e := range want {
		if string(got[uid].Status) != string(e.Status) || got[uid].Version != e.Version {
			t.Errorf("%s: salvaged version %d %q, want %d %q", uid, got[uid].Version, got[uid].Status, e.Version, e.Status)
		}
	}
}

// TestSalvageLostNewest: the index knows of versions whose events are lost, also
// below the horizon.
func TestSalvageLostNewest(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	j, err := Open(path, Options{Retention: Retention{MaxEvents: 20}})
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		mustAppend(t, j, set("quiet", marker(1)))
	}
	last := mustAppend(t, j, set("quiet", marker(2)))[0]
	for range 60 {
		mustAppend(t, j, set("busy", marker(3)))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	eraseEvent(t, path, last.Sequence)
	got, out := salvage(t, path)
	if len(got.LostPods) != 1 || got.LostPods[0] != "quiet" {
		t.Errorf("lost pods %v", got.LostPods)
	}
	if next := mustAppend(t, open(t, out, Options{}), set("quiet", "next"))[0]; next.Version <= last.Version {
		t.Errorf("version %d was given away before: %d", next.Version, last.Version)
	}
}

// TestSalvageLostTail: a head record names events that are not there.
func TestSalvageLostTail(t *testing.T) {
	path := filled(t, 60)
	for seq := Sequence(53); seq <= 60; seq++ {
		eraseEvent(t, path, seq)
	}
	got, out := salvage(t, path)
	if got.LostEvents != 8 || len(got.Lost) != 1 || got.Lost[0] != (SequenceRange{53, 60}) {
		t.Errorf("%+v", got)
	}
	next := mustAppend(t, open(t, out, Options{}), set("pod-9", "next"))[0]
	if next.Sequence <= 60 || next.Version < 6+8 {
		t.Errorf("sequence %d version %d", next.Sequence, next.Version)
	}
}

// eraseEvent makes all copies of an event in the file unreadable.
func eraseEvent(t *testing.T, path string, seq Sequence) {
	t.Helper()
	var record []byte
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		record = bytes.Clone(tx.Bucket(bucketEvents).Get(sequenceKey(seq)))
		return nil
	})
	if err != nil || db.Close() != nil || record == nil {
		t.Fatalf("event %d: %v", seq, err)
	}
	patch(t, path, func(b []byte) []byte {
		return bytes.ReplaceAll(b, record, make([]byte, len(record)))
	})
}
