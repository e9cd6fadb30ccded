// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// pageOf returns the offset of the events bucket's root page and its kind.
func pageOf(t *testing.T, b []byte, bucket []byte) int {
	t.Helper()
	meta := newestMeta(b)
	found := 0
	scanElements(b[int(meta.root)*4096:][:4096], func(flags uint32, key, value []byte) {
		if string(key) == string(bucket) {
			found = int(binary.LittleEndian.Uint64(value)) * 4096
		}
	})
	if found == 0 {
		t.Fatalf("bucket %s has no page", bucket)
	}
	return found
}

func newestMeta(b []byte) boltMeta {
	first, err1 := parseBoltMeta(b)
	second, err2 := parseBoltMeta(b[4096:])
	if err1 != nil || err2 == nil && second.txid > first.txid {
		return second
	}
	return first
}

// TestG8_TreeDamage: what the engine would not survive is refused before it
// gets to see it.
func TestG8_TreeDamage(t *testing.T) {
	le := binary.LittleEndian
	tests := []struct {
		name    string
		change  func(t *testing.T, b []byte)
		text    string
		reading bool // a reader may go on
	}{
		{"cycle", func(t *testing.T, b []byte) {
			root := pageOf(t, b, bucketEvents)
			if le.Uint16(b[root+8:]) != branchPage {
				t.Fatal("events has no branch page")
			}
			le.PutUint64(b[root+pageHeaderSize+3*leafElement+8:], uint64(root/4096))
		}, "used twice", false},
		{"child outside of the file", func(t *testing.T, b []byte) {
			root := pageOf(t, b, bucketEvents)
			le.PutUint64(b[root+pageHeaderSize+8:], 1<<40)
		}, "outside of the file", true},
		{"C20 freelist page zeroed", func(t *testing.T, b []byte) {
			clear(b[int(newestMeta(b).freelist)*4096:][:4096])
		}, "freelist", true},
		{"live page on the freelist", func(t *testing.T, b []byte) {
			at := int(newestMeta(b).freelist) * 4096
			if le.Uint16(b[at+10:]) == 0 {
				t.Fatal("freelist is empty")
			}
			le.PutUint64(b[at+pageHeaderSize:], uint64(pageOf(t, b, bucketEvents)/4096))
		}, "freelist", true},
		{"C20 root page of events zeroed", func(t *testing.T, b []byte) {
			clear(b[pageOf(t, b, bucketEvents):][:4096])
		}, "page", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t, 1000)
			patch(t, path, func(b []byte) []byte { tt.change(t, b); return b })
			before := digest(path)
			_, err := Open(path, Options{})
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open: %v", err)
			}
			r, err := OpenReadOnly(path, ReadOptions{})
			if err == nil {
				got, _ := r.Verify(t.Context(), nil)
				if got.Problems == 0 {
					t.Error("verify finds nothing")
				}
				r.Close()
			} else if tt.reading && !isUnsafe(err) {
				t.Errorf("OpenReadOnly: %v", err)
			}
			if digest(path) != before {
				t.Error("the file changed")
			}
			if got, _ := salvage(t, path); got.Events < 900 {
				t.Errorf("salvaged %d events", got.Events)
			}
		})
	}
}

// TestC20_FirstMetaPage: page 0 alone is not needed; the open says so.
func TestC20_FirstMetaPage(t *testing.T) {
	path := filled(t, 20)
	patch(t, path, func(b []byte) []byte { clear(b[:4096]); return b })
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if !j.Info().Suspect {
		t.Error("not suspect")
	}
	if got := all(t, j); len(got) < 20 {
		t.Errorf("%d events", len(got))
	}
}

// C54: good pages between bad ones are read.
func TestC54_SeveralLeafPages(t *testing.T) {
	path := filled(t, 900)
	lost := 0
	patch(t, path, func(b []byte) []byte {
		at := pageOf(t, b, bucketEvents)
		for _, child := range []int{5, 7, 8, 12} {
			id := int(binary.LittleEndian.Uint64(b[at+pageHeaderSize+child*leafElement+8:]))
			lost += int(binary.LittleEndian.Uint16(b[id*4096+10:]))
			clear(b[id*4096:][:4096])
		}
		return b
	})
	good, bad := read(t, path, 1, 0)
	if len(good) != 900-lost || len(bad) != 3 {
		t.Errorf("%d good of %d with %d lost; %v", len(good), 900, lost, bad)
	}
	for _, err := range bad {
		if strings.Contains(err.Error(), "nil") {
			t.Error(err)
		}
	}
}

// C55: an empty value under the next sequence is somebody
// else's; it is named, and the next append takes its place.
func TestC55_KeyAboveTheHead(t *testing.T) {
	path := filled(t, 20)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketEvents).Put(sequenceKey(21), nil) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Verify(t.Context(), func(p Problem) { t.Error(p) }); err != nil || len(got.Notes) != 1 {
		t.Errorf("notes %v, %v", got.Notes, err)
	}
	r.Close()
	j := open(t, path, Options{})
	if got := all(t, j); len(got) != 21 {
		t.Errorf("%d events", len(got))
	}
}

// TestCompactRefusesDamage: nothing is left behind.
func TestCompactRefusesDamage(t *testing.T) {
	path := filled(t, 400)
	patch(t, path, func(b []byte) []byte { b[strings.Index(string(b), marker(200))+3] ^= 1; return b })
	dir := t.TempDir()
	if _, err := Compact(t.Context(), path, dir+"/out.db"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestG8_BranchDamage: every branch page of the history is checked at each open,
// also those that nothing leads to but others of their kind.
func TestG8_BranchDamage(t *testing.T) {
	le := binary.LittleEndian
	path := filled(t, 20_000)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lowest := []int{} // offsets of the branch pages right above leaf pages
	root := pageOf(t, original, bucketEvents)
	for i := range int(le.Uint16(original[root+10:])) {
		child := int(le.Uint64(original[root+pageHeaderSize+i*leafElement+8:])) * 4096
		if le.Uint16(original[child+8:]) != branchPage {
			t.Fatal("the tree has two levels only")
		}
		lowest = append(lowest, child)
	}
	if len(lowest) < 3 {
		t.Fatalf("%d branch pages", len(lowest))
	}
	changes := map[string]func(page []byte, element int){
		"a child that is another's": func(page []byte, i int) { // of the element before
			le.PutUint64(page[pageHeaderSize+i*leafElement+8:], le.Uint64(page[pageHeaderSize+(i-1)*leafElement+8:]))
		},
		"a cycle": func(page []byte, i int) { le.PutUint64(page[pageHeaderSize+i*leafElement+8:], le.Uint64(page)) },
		"a key out of order": func(page []byte, i int) {
			clear(branchKey(page, i))
		},
		"too few elements": func(page []byte, i int) { le.PutUint16(page[10:], uint16(i)) },
		"a size":           func(page []byte, i int) { page[pageHeaderSize+i*leafElement+4] ^= 1 },
		"a number":         func(page []byte, _ int) { page[0] ^= 1 },
	}
	damaged := filepath.Join(t.TempDir(), FileName)
	for name, change := range changes {
		for _, at := range lowest {
			b := bytes.Clone(original)
			count := int(le.Uint16(b[at+10:]))
			change(b[at:][:4096], 1+count/2)
			if err := os.WriteFile(damaged, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if j, err := Open(damaged, Options{}); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, page %d of %d: got %v", name, at/4096, len(lowest), err)
				if err == nil {
					j.Close()
				}
			}
		}
	}
}

// readPages notes which pages are read.
type readPages struct {
	io.ReaderAt
	size int64
	kind map[int64]uint16 // page number to flags
}

func (r *readPages) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, at)
	r.kind[at/r.size] = binary.LittleEndian.Uint16(b[8:])
	return n, err
}

func (r *readPages) of(kind uint16) (n int) {
	for _, k := range r.kind {
		if k == kind {
			n++
		}
	}
	return n
}

// TestOpenReadsBranchesOnly: of a long history all branch pages are checked at an
// open, and next to no leaf pages. A tree of another depth, which somebody else's
// bucket of the same name has, changes nothing.
func TestOpenReadsBranchesOnly(t *testing.T) {
	const pageSize = 512
	path := filepath.Join(t.TempDir(), FileName)
	compacted(t, filled(t, 12_000), path, pageSize)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("another"))
		if err != nil {
			return err
		}
		if b, err = b.CreateBucket(bucketEvents); err != nil {
			return err
		}
		for i := range 50 {
			if err := b.Put(sequenceKey(Sequence(i)), make([]byte, 50)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	metas, _ := readMetas(bytes.NewReader(b))
	if len(metas) != 2 {
		t.Fatalf("%d meta pages", len(metas))
	}
	newest := metas[0]
	if metas[1].txid > newest.txid {
		newest = metas[1]
	}
	read := func(d depth) *readPages {
		r := &readPages{bytes.NewReader(b), pageSize, map[int64]uint16{}}
		if problems := checkTree(r, newest, d); len(problems) != 0 {
			t.Fatal(problems)
		}
		return r
	}
	atOpen, all := read(branches), read(leaves)
	if got, want := atOpen.of(branchPage), all.of(branchPage); got != want || got < 50 {
		t.Errorf("%d of %d branch pages are read", got, want)
	}
	if got, of := atOpen.of(leafPage), all.of(leafPage); got > 30 || of < 1000 {
		t.Errorf("%d of %d leaf pages are read", got, of)
	}
}
