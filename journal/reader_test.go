// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// editBolt changes a closed journal behind its back.
func editBolt(t *testing.T, path string, edit func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(edit), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestG8_DamagedMeta: a writer refuses a file whose own records are damaged, a
// reader names them and shows what is good all the same.
func TestG8_DamagedMeta(t *testing.T) {
	put := func(bucket, key []byte) func(tx *bolt.Tx) error {
		return func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(key, []byte("garbled")) }
	}
	tests := []struct {
		name  string
		edit  func(tx *bolt.Tx) error
		key   string
		pods  int
		certn bool // Info tells it at once
	}{
		{"head", put(bucketMeta, keyHead), "head", 10, true},
		{"no head", func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyHead) }, "head", 10, true},
		{"about", put(bucketMeta, keyAbout), "about", 10, true},
		{"opened", put(bucketMeta, keyOpened), "opened", 10, true},
		{"index record", put(bucketPods, []byte("pod-3")), "pod-3", 10, false},
		{"index record lost", func(tx *bolt.Tx) error { return tx.Bucket(bucketPods).Delete([]byte("pod-3")) }, "", 10, false},
		{"head and event", func(tx *bolt.Tx) error {
			return errors.Join(put(bucketMeta, keyHead)(tx), put(bucketEvents, sequenceKey(197))(tx))
		}, "head", 3, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t, 200)
			w := truthOf(t, path)
			editBolt(t, path, tt.edit)
			if _, err := Open(path, Options{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.key) {
				t.Errorf("Open: %v", err)
			}
			r, err := OpenReadOnly(path, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := strings.Join(r.Info().Damage, " "); tt.certn != (got != "" && strings.Contains(got, tt.key)) {
				t.Errorf("info names %q", got)
			}
			events, bad := 0, 0
			for e, err := range r.Events(1, 0) {
				if err != nil {
					bad++
				} else if string(e.Status) != string(w.events[e.Sequence].Status) {
					t.Errorf("event %d is wrong", e.Sequence)
				} else {
					events++
				}
			}
			if events < 199 || tt.certn && bad == 0 {
				t.Errorf("%d events, %d errors", events, bad)
			}
			var pods []types.UID
			bad = 0
			for e, err := range r.Newest() {
				if err != nil {
					bad++
					continue
				}
				pods = append(pods, e.UID)
				if e.Sequence != w.newest[e.UID].Sequence {
					t.Errorf("newest of %s is %d, want %d", e.UID, e.Sequence, w.newest[e.UID].Sequence)
				}
			}
			if len(pods) != tt.pods || bad == 0 {
				t.Errorf("%d certain pods, want %d: %v; %d errors", len(pods), tt.pods, pods, bad)
			}
			var problems []string
			if _, err := r.Verify(t.Context(), func(p Problem) { problems = append(problems, p.String()) }); err != nil {
				t.Error(err)
			}
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, tt.key) }) || len(problems) > 3 {
				t.Errorf("verify finds %q", problems)
			}
		})
	}
}

// TestG8_LostWrite: a page that is whole but older, as a disk leaves it that lost a
// write, is named in each bucket where contiguous sequences do not tell.
func TestG8_LostWrite(t *testing.T) {
	for _, bucket := range [][]byte{bucketPods, bucketAcks, bucketObjects} {
		t.Run(string(bucket), func(t *testing.T) {
			j := openNew(t, Options{})
			e := set("a", "1")
			e.Object = []byte("first")
			mustAppend(t, j, e)
			j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 1})
			j = reopen(t, j) // with the index
			var old []byte
			err := j.read(func(tx *bolt.Tx) error { old = slices.Clone(tx.Bucket(bucket).Get([]byte("a"))); return nil })
			if err != nil {
				t.Fatal(err)
			}
			e.Status, e.Object = []byte("2"), []byte("second")
			mustAppend(t, j, e)
			j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 2})
			path := filepath.Join(t.TempDir(), FileName)
			if err := errors.Join(j.Close(), copyFile(j.path, path)); err != nil {
				t.Fatal(err)
			}
			editBolt(t, path, func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put([]byte("a"), old) })
			r, err := OpenReadOnly(path, ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var named []error
			for e, err := range r.Newest() {
				if named = append(named, err); err == nil && string(e.Status) != "2" {
					t.Errorf("served %q", e.Status)
				}
			}
			_, err = r.Acks()
			named = append(named, err)
			for _, o := range r.Objects() {
				named = append(named, o.Err)
			}
			if !slices.ContainsFunc(named, func(err error) bool { return errors.Is(err, errSum) }) {
				t.Errorf("reading names %v", named)
			}
			if got, _ := r.Verify(t.Context(), nil); got.Problems == 0 {
				t.Error("verify finds nothing")
			}
			r.Close()
			k, err := Open(path, Options{})
			if string(bucket) == string(bucketAcks) {
				if err != nil {
					t.Fatal(err) // hints: it goes on
				}
				if err := k.Close(); err != nil {
					t.Error(err)
				}
				verify(t, path)
			} else if !errors.Is(err, errSum) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestSums_OfEarlierReleases: a file without sums gets them with its first commit.
func TestSums_OfEarlierReleases(t *testing.T) {
	path, _ := unpack(t, "v1-kinds")
	j, err := Open(path, Options{Node: goldenNode})
	if err != nil {
		t.Fatal(err)
	}
	if !j.state.head.Sums.known {
		t.Error("no sums after the opened event")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	verify(t, path)
	uid := ""
	editBolt(t, path, func(tx *bolt.Tx) error {
		k, _ := tx.Bucket(bucketPods).Cursor().First()
		uid = string(k)
		return tx.Bucket(bucketPods).Delete(slices.Clone(k))
	})
	if _, err := Open(path, Options{Node: goldenNode}); !errors.Is(err, errSum) {
		t.Errorf("without the index record of %s: %v", uid, err)
	}
}

// TestSums_AreKept: after any history the sums are those of the values.
func TestSums_AreKept(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{MaxEvents: 50, TombstoneAge: 1}})
	for i := range 60 {
		uid := types.UID(fmt.Sprint(i % 7))
		e := set(uid, fmt.Sprint(i))
		if i%3 == 0 {
			e.Object = []byte(fmt.Sprint("object", i))
		}
		got := mustAppend(t, j, e)
		if i%2 == 0 {
			j.PutAck(Ack{UID: uid, LiveUID: uid, Version: got[0].Version})
		}
		switch i % 11 {
		case 4:
			mustAppend(t, j, removed(uid))
		case 7:
			j.ForgetAck(uid)
		case 9:
			j = reopen(t, j)
		}
		var want sums
		var err error
		if e := j.read(func(tx *bolt.Tx) error { want, err = sumAll(tx); return err }); e != nil {
			t.Fatal(e)
		}
		if j.state.head.Sums != want {
			t.Fatalf("step %d: %+v, the values have %+v", i, j.state.head.Sums, want)
		}
	}
}
