// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, b, 0o600))
}

func objectsIn(t *testing.T, path string) map[types.UID]string {
	t.Helper()
	return truthOf(t, path).objects
}

// TestSalvage_NewestObject: free pages hold older objects; they do not come back.
func TestSalvage_NewestObject(t *testing.T) {
	j := openNew(t, Options{})
	with := func(uid types.UID, object string) Event {
		e := set(uid, "status "+object)
		e.Object = []byte(object)
		return e
	}
	for i := range 40 {
		uid := types.UID(fmt.Sprint("pod-", i%4))
		mustAppend(t, j, with(uid, fmt.Sprint("object ", i)))
	}
	mustAppend(t, j, with("gone", "of the life before"))
	mustAppend(t, j, removed("gone"))
	mustAppend(t, j, set("gone", "back without an object"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := objectsIn(t, j.path)
	got, out := salvage(t, j.path)
	if found := objectsIn(t, out); len(found) != 4 || fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("objects %v, want %v", found, want)
	}
	if got.Objects != 4 || len(got.LostObjects) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSalvage_ObjectsInDoubt: what is not provably the newest is left out and named.
func TestSalvage_ObjectsInDoubt(t *testing.T) {
	object := func(data string, seq Sequence) podObject { return podObject{[]byte(data), seq} }
	event := func(seq Sequence, kind Kind, uid types.UID) Event { return Event{Sequence: seq, Kind: kind, UID: uid} }
	tests := []struct {
		name   string
		found  []podObject
		events []Event
		want   string // empty: none
		doubt  bool
	}{
		{"newest wins", []podObject{object("2", 9), object("1", 3)}, nil, "2", false},
		{"the same twice", []podObject{object("1", 3), object("1", 3)}, nil, "1", false},
		{"old release, one copy", []podObject{object("1", 0), object("1", 0)}, nil, "1", false},
		{"old release, two that differ", []podObject{object("1", 0), object("2", 0)}, nil, "2", true},
		{"a newer one settles it", []podObject{object("1", 0), object("2", 0), object("3", 4)}, nil, "3", false},
		{"undone by a crash", []podObject{object("1", 4), object("2", 4)}, nil, "2", true},
		{"came with another pod's event", []podObject{object("1", 4)}, []Event{event(4, KindSet, "b")}, "1", true},
		{"removed later", []podObject{object("1", 4)}, []Event{event(4, KindSet, "a"), event(5, KindRemoved, "a"), event(6, KindSet, "a")}, "", false},
		{"removed before", []podObject{object("1", 6)}, []Event{event(5, KindRemoved, "a"), event(6, KindSet, "a")}, "1", false},
		{"old release, removed once", []podObject{object("1", 0)}, []Event{event(5, KindRemoved, "a"), event(6, KindSet, "a")}, "1", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &salvager{objects: map[types.UID]objectCopy{}, bySequence: map[Sequence][]types.UID{}}
			for _, o := range tt.found {
				s.objects["a"] = s.objects["a"].newer(o)
			}
			s.bySequence[s.objects["a"].sequence] = []types.UID{"a"}
			for _, e := range tt.events {
				s.judgeObjects(&e)
			}
			got, ok := s.objects["a"]
			if ok != (tt.want != "") || got.doubt != tt.doubt || ok && !tt.doubt && string(got.data) != tt.want {
				t.Errorf("%q, doubt %v", got.data, got.doubt)
			}
		})
	}
}

// TestSalvage_PageSizes: without a meta page the size of the pages is found out.
func TestSalvage_PageSizes(t *testing.T) {
	source := filled(t, 300)
	for _, size := range []int{512, 1024, 4096, 16 << 10, 64 << 10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), FileName)
			compacted(t, source, path, size)
			patch(t, path, func(b []byte) []byte { clear(b[:2*size]); return b })
			got, out := salvage(t, path)
			if got.Events != 300 || got.Pods != 10 {
				t.Errorf("%+v", got)
			}
			verify(t, out)
		})
	}
}
