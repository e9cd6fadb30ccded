// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// filled makes a closed journal of n events on pods/10 pods.
func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	for i := 2; i <= n; i++ { // 1 is the opened event
		events = append(events, set(types.UID(fmt.Sprint("pod-", i%10)), fmt.Sprintf("status %d %s", i, marker(i))))
	}
	mustAppend(t, j, events...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// marker is bytes that S2 leaves as they are and that occur once in the file.
func marker(i int) string {
	b := make([]byte, 48)
	x := uint32(i*2654435761 + 12345)
	for k := range b {
		x = x*1664525 + 1013904223
		b[k] = byte(x >> 24)
	}
	return string(b)
}

func patch(t *testing.T, path string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// read returns what a reader yields: sequences that are good, and the errors.
func read(t *testing.T, path string, from, to Sequence) (good []Sequence, bad []error) {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Events(from, to) {
		if err != nil {
			bad = append(bad, err)
		} else {
			good = append(good, e.Sequence)
		}
	}
	return good, bad
}

func TestEventsRange(t *testing.T) {
	path := filled(t, 700) // several pages
	for _, tt := range []struct {
		from, to    Sequence
		first, last Sequence
		n           int
	}{
		{0, 0, 1, 700, 700}, {1, 700, 1, 700, 700}, {256, 257, 256, 257, 2}, {700, 0, 700, 700, 1}, {701, 0, 0, 0, 0}, {5, 4, 0, 0, 0}, {690, 9000, 690, 700, 11},
	} {
		good, bad := read(t, path, tt.from, tt.to)
		if len(bad) > 0 || len(good) != tt.n || tt.n > 0 && (good[0] != tt.first || good[len(good)-1] != tt.last) {
			t.Errorf("%d to %d: %d events, %v", tt.from, tt.to, len(good), bad)
		}
	}
}

func TestEventsStopsEarly(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"), set("a", "2"))
	for range j.Events(1, 0) {
		// Appending while the iterator lives works: it holds no transaction.
		mustAppend(t, j, set("a", "3"))
		break
	}
}

// C23: one bit inside the value of event 500 of 1000.
func TestC23_FlippedBit(t *testing.T) {
	path := filled(t, 1000)
	patch(t, path, func(b []byte) []byte {
		at := bytes.Index(b, []byte(marker(500)))
		if at < 0 {
			t.Fatal("event 500 not found in the file")
		}
		b[at+20] ^= 4
		return b
	})
	good, bad := read(t, path, 1, 0)
	if len(good) != 999 || len(bad) != 1 || !strings.Contains(bad[0].Error(), "sequence 500") {
		t.Errorf("%d good, bad %v", len(good), bad)
	}
	// No pod's newest event is hit, so the store serves all pods.
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if got := newest(t, j); len(got) != 10 {
		t.Errorf("%d pods", len(got))
	}
	problems := 0
	if _, err := j.Verify(t.Context(), func(p Problem) {
		problems++
		if p.Sequence != 500 {
			t.Errorf("verify: %v", p)
		}
	}); err != nil || problems != 1 {
		t.Errorf("%d problems, %v", problems, err)
	}
}

// C54: what is still reachable is read, the lost range named.
func TestC54_ZeroedLeafPage(t *testing.T) {
	path := filled(t, 500)
	size := 0
	patch(t, path, func(b []byte) []byte {
		at := bytes.Index(b, []byte(marker(250)))
		page := b[at&^4095 : at&^4095+4096]
		const leaf = 2
		if binary.LittleEndian.Uint16(page[8:]) != leaf {
			t.Skip("event 250 begins on the page before")
		}
		size = int(binary.LittleEndian.Uint16(page[10:]))
		clear(page)
		return b
	})
	good, bad := read(t, path, 1, 0)
	if len(good) != 500-size || len(bad) != 1 || !errors.Is(bad[0], ErrCorrupt) || !strings.Contains(bad[0].Error(), "unreadable") {
		t.Errorf("%d good of %d, the page had %d; bad %v", len(good), 500, size, bad)
	}
	for i := 1; i < len(good); i++ {
		if good[i] <= good[i-1] {
			t.Fatalf("%d after %d", good[i], good[i-1])
		}
	}
	verifyFinds(t, path)
}

func verifyFinds(t *testing.T, path string) {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Verify(t.Context(), nil); err != nil || got.Problems == 0 {
		t.Errorf("verify finds %d problems, %v", got.Problems, err)
	}
}

// C55: odd keys and buckets are named and left alone.
func TestC55_ForeignKeys(t *testing.T) {
	path := filled(t, 20)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		other, err := tx.CreateBucket([]byte("other"))
		return errors.Join(err, other.Put([]byte("k"), []byte("v")), tx.Bucket(bucketEvents).Put([]byte("alarm"), []byte("x")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if good, bad := read(t, path, 1, 0); len(good) != 20 || len(bad) != 0 {
		t.Errorf("%d good, bad %v", len(good), bad)
	}
	j := open(t, path, Options{})
	mustAppend(t, j, set("a", "1"))
	got, err := j.Verify(t.Context(), func(p Problem) { t.Error(p) })
	if err != nil || len(got.Notes) != 2 {
		t.Errorf("notes %v, %v", got.Notes, err)
	}
}

func TestMissingEventsAreNamed(t *testing.T) {
	path := filled(t, 30)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketEvents)
		return errors.Join(b.Delete(sequenceKey(5)), b.Delete(sequenceKey(6)), b.Delete(sequenceKey(9)))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	good, bad := read(t, path, 1, 12)
	if len(good) != 9 || len(bad) != 2 || !strings.Contains(bad[0].Error(), "events 5 to 6 are missing") {
		t.Errorf("good %v, bad %v", good, bad)
	}
	verifyFinds(t, path)
}

func TestSnapshot(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	if err := j.Snapshot(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, set("a", "2"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if good, bad := read(t, path, 1, 0); len(good) != 2 || len(bad) != 0 {
		t.Errorf("the copy has %v, %v", good, bad)
	}
	if err := j.Snapshot(t.Context(), path); !errors.Is(err, os.ErrExist) {
		t.Errorf("over an existing file: %v", err)
	}
	f, err := j.SnapshotFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 {
		t.Error("the unnamed copy is empty")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
	if got := names(t, filepath.Dir(j.path)); len(got) != 2 {
		t.Errorf("left behind: %v", got)
	}
	// A restored copy goes on far above where it was: see TestG2_CopyPutBack.
	k := open(t, path, Options{})
	if got := mustAppend(t, k, set("a", "3"))[0]; got.Version != 2+copyLeap || got.Epoch != 2+copyLeap {
		t.Errorf("version %d epoch %d", got.Version, got.Epoch)
	}
}

func TestObjects(t *testing.T) {
	j := openNew(t, Options{})
	var events []Event
	for i := range 600 { // several pages
		e := set(types.UID(fmt.Sprint("pod-", i)), "1")
		e.Object = []byte(fmt.Sprint("object ", i))
		events = append(events, e)
	}
	mustAppend(t, j, events...)
	mustAppend(t, j, removed("pod-7"))
	e := set("pod-8", "2")
	e.Object = []byte("newer")
	mustAppend(t, j, e, set("pod-8", "3"))
	j = reopen(t, j)
	got := map[string]string{}
	for uid, r := range j.Objects() {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		got[string(uid)] = string(r.Object)
	}
	if len(got) != 599 || got["pod-8"] != "newer" || got["pod-599"] != "object 599" || got["pod-7"] != "" {
		t.Errorf("%d objects, pod-8 %q, pod-7 %q", len(got), got["pod-8"], got["pod-7"])
	}
}
