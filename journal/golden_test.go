// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// goldenNode is the node that the files in testdata are of.
const goldenNode = "golden-node"

// golden is what a file in testdata holds, as its JSON says. It was written
// together with the file and is not changed with it.
type golden struct {
	Node     string
	Created  int64
	Head     Sequence
	Epoch    Epoch
	Horizon  Sequence
	Suspect  bool // one meta page is invalid
	Problems int  // that Verify finds
	Events   []goldenEvent
	Acks     []goldenAck
	Objects  map[types.UID][]byte
}

type goldenEvent struct {
	Sequence    Sequence
	Kind        Kind
	Epoch       Epoch
	Time        int64
	UID         types.UID `json:",omitempty"`
	Namespace   string    `json:",omitempty"`
	Name        string    `json:",omitempty"`
	Version     Version
	Incarnation Incarnation       `json:",omitempty"`
	Finished    bool              `json:",omitempty"`
	Reason      Reason            `json:",omitempty"`
	ContentType ContentType       `json:",omitempty"`
	Status      []byte            `json:",omitempty"`
	Aux         []byte            `json:",omitempty"`
	Attributes  map[string]string `json:",omitempty"`
	First       bool              `json:",omitempty"`
}

type goldenAck struct {
	UID     types.UID
	LiveUID types.UID
	Version Version
	Time    int64
}

func goldenOf(e Event) goldenEvent {
	return goldenEvent{e.Sequence, e.Kind, e.Epoch, unixNanos(e.Time), e.UID, e.Namespace, e.Name, e.Version, e.Incarnation,
		e.Finished, e.Reason, e.ContentType, e.Status, e.Aux, e.Attributes, e.First}
}

// goldenFiles returns the names in testdata, without their endings.
func goldenFiles(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("testdata/v*.db.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".db.gz"))
	}
	return names
}

// unpack puts a golden file into a directory of its own.
func unpack(t *testing.T, name string) (path string, want golden) {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err1 := io.ReadAll(z)
	path = filepath.Join(t.TempDir(), FileName)
	expected, err2 := os.ReadFile("testdata/" + name + ".json")
	if err := errors.Join(err1, err2, os.WriteFile(path, content, 0o600), json.Unmarshal(expected, &want)); err != nil {
		t.Fatal(err)
	}
	return path, want
}

// readGolden reads all there is through the package.
func readGolden(t *testing.T, path string) golden {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	info := r.Info()
	got := golden{Node: info.Node, Created: unixNanos(info.Created), Head: s.Head, Epoch: s.Epoch, Horizon: s.Horizon, Suspect: info.Suspect,
		Objects: map[types.UID][]byte{}}
	for e, err := range r.Events(1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got.Events = append(got.Events, goldenOf(e))
	}
	acks, err := r.Acks()
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range slices.Sorted(maps.Keys(acks)) {
		a := acks[uid]
		got.Acks = append(got.Acks, goldenAck{a.UID, a.LiveUID, a.Version, unixNanos(a.Time)})
	}
	for uid, o := range r.Objects() {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		got.Objects[uid] = o.Object
	}
	result, err := r.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got.Problems = result.Problems
	return got
}

// TestGolden_Read: journals of each format are read as they were written, and
// reading changes nothing.
func TestGolden_Read(t *testing.T) {
	for _, name := range goldenFiles(t) {
		t.Run(name, func(t *testing.T) {
			path, want := unpack(t, name)
			before := digest(path)
			if diff := cmp.Diff(want, readGolden(t, path)); diff != "" {
				t.Errorf("-written +read:\n%s", diff)
			}
			if digest(path) != before {
				t.Error("reading changed the file")
			}
			if got := names(t, filepath.Dir(path)); len(got) != 1 {
				t.Errorf("reading left %v behind", got)
			}
		})
	}
}

// TestGolden_Write: a journal of each format is gone on with.
func TestGolden_Write(t *testing.T) {
	for _, name := range goldenFiles(t) {
		t.Run(name, func(t *testing.T) {
			path, want := unpack(t, name)
			markOfOldRelease(t, path)
			j := open(t, path, Options{Node: goldenNode})
			versions := map[types.UID]Version{}
			for _, e := range want.Events {
				if indexed(e.Kind) {
					versions[e.UID] = e.Version
				}
			}
			for uid, e := range newest(t, j) {
				if e.Version != versions[uid] {
					t.Errorf("%s has version %d, want %d", uid, e.Version, versions[uid])
				}
				versions[uid] = e.Version
			}
			for uid, version := range versions {
				got := mustAppend(t, j, set(uid, "next"))[0]
				if got.Version <= version || got.Sequence <= want.Head || got.Epoch != want.Epoch+1 {
					t.Errorf("%s: version %d after %d, sequence %d after %d, epoch %d after %d", uid, got.Version, version, got.Sequence, want.Head, got.Epoch, want.Epoch)
				}
			}
			// History stays: those of unknown kinds too.
			for i, e := range all(t, j)[:len(want.Events)] {
				if diff := cmp.Diff(want.Events[i], goldenOf(e)); diff != "" {
					t.Errorf("-written +read:\n%s", diff)
				}
			}
		})
	}
}

// TestGolden_UnknownIsKept: kinds, elements, keys and buckets of later releases
// survive compaction, and writing.
func TestGolden_UnknownIsKept(t *testing.T) {
	path, want := unpack(t, "v1-extended")
	j, err := Open(path, Options{Node: goldenNode})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, set("a", "1"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), FileName)
	if _, err := Compact(t.Context(), path, out); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(out, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		if b := tx.Bucket([]byte("later")); b == nil || string(b.Get([]byte("key"))) != "value" {
			t.Error("the bucket of a later release is gone")
		}
		if v := tx.Bucket(bucketEvents).Get([]byte("later")); string(v) != "value" {
			t.Errorf("the key of a later release is %q", v)
		}
		for _, e := range want.Events {
			v := tx.Bucket(bucketEvents).Get(sequenceKey(e.Sequence))
			if e.Kind == 42 && !bytes.Contains(v, []byte("a later element")) {
				t.Errorf("record %d has become %q", e.Sequence, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// C27: a file, or a record in it, of a newer format is refused
// with both numbers, is not called damaged, and stays as it is.
func TestC27_NewerFormat(t *testing.T) {
	tests := []struct {
		name string
		edit func(tx *bolt.Tx) error
		text []string
	}{
		{"file", func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyFormat, []byte{0, 0, 0, 7}) },
			[]string{"format 7", "up to 1"}},
		{"record", func(tx *bolt.Tx) error {
			key, _ := tx.Bucket(bucketEvents).Cursor().Last()
			key = slices.Clone(key)
			s := newSealer()
			s.begin(1)
			s.uint(7)
			return tx.Bucket(bucketEvents).Put(key, s.finish(key))
		}, []string{"format 7", "reads 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := unpack(t, "v1-unclean")
			db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(tt.edit), db.Close()); err != nil {
				t.Fatal(err)
			}
			before := digest(path)
			_, err = Open(path, Options{})
			refused := func(err error) {
				t.Helper()
				if !errors.Is(err, ErrNewerFormat) || errors.Is(err, ErrCorrupt) {
					t.Fatalf("got %v", err)
				}
				for _, text := range append(tt.text, path) {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q is not in: %v", text, err)
					}
				}
			}
			refused(err)
			r, err := OpenReadOnly(path, ReadOptions{})
			if err == nil {
				for _, e := range r.Events(1, 0) {
					err = errors.Join(err, e)
				}
				r.Close()
			}
			refused(err)
			if digest(path) != before || len(names(t, filepath.Dir(path))) != 1 {
				t.Error("something was changed")
			}
		})
	}
}
