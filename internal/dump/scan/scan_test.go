// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a closed journal of n events beside the opened one, of a few pods,
// some with statuses of several pages.
func build(t testing.TB, n int, o journal.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), journal.FileName)
	j, err := journal.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var batch []journal.Event
	seen := map[types.UID]bool{}
	for i := range n {
		uid := types.UID(fmt.Sprintf("uid-%d", random.IntN(7)))
		e := journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, UID: uid, Namespace: "default", Name: "web-" + string(uid),
			ContentType: journal.ContentTypeProtobuf, Status: []byte(marker(i))}
		switch random.IntN(12) {
		case 0:
			e = journal.Event{Kind: journal.KindRejected, UID: uid, Namespace: "default", Name: "web", Attributes: map[string]string{"message": marker(i), "to": "Running"}}
		case 1:
			e.Aux = []byte("aux")
			e.Status = bytes.Repeat([]byte(marker(i)), 200) // compressible
		case 2:
			e.Status = make([]byte, 9000)
			for k := range e.Status {
				e.Status[k] = byte(random.Uint32())
			}
		case 3:
			if seen[uid] {
				e.Kind, e.Reason = journal.KindFinished, ""
			}
		}
		seen[uid] = seen[uid] || e.Kind == journal.KindSet
		if batch = append(batch, e); len(batch) == 50 || i == n-1 {
			if _, err := j.Append(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	j.PutAck(journal.Ack{UID: "uid-1", LiveUID: "live", Version: 1, Time: time.Unix(1700000000, 5).UTC()})
	return path
}

// differ names the first event that two lists don't share; "" if they are equal.
func differ(want, got []journal.Event) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want) || i >= len(got):
			return fmt.Sprintf("%d events, want %d", len(got), len(want))
		case !reflect.DeepEqual(want[i], got[i]):
			return fmt.Sprintf("got %.300q\nwant %.300q", fmt.Sprint(got[i]), fmt.Sprint(want[i]))
		}
	}
	return ""
}

func marker(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(i)))) }

func events(t testing.TB, path string, o Options) (all []journal.Event, next journal.Sequence, err error) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		return nil, o.From, err
	}
	defer f.Close()
	place, err := f.Scan(t.Context(), o, func(r *Record) bool {
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
		return true
	})
	return all, place.Sequence, err
}

func reference(t testing.TB, path string, from, to journal.Sequence) (all []journal.Event) {
	t.Helper()
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Events(from, to) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestScan_AsReader: on sound journals of several shapes and ranges, both readers
// give the same.
func TestScan_AsReader(t *testing.T) {
	tests := []struct {
		name    string
		n       int
		options journal.Options
	}{
		{"inline", 0, journal.Options{}},
		{"one leaf", 3, journal.Options{Node: "node-1"}},
		{"some leaves", 200, journal.Options{}},
		{"many", 5000, journal.Options{Retention: journal.Retention{MaxEvents: 10000}}},
		{"trimmed", 5000, journal.Options{Retention: journal.Retention{MaxEvents: 500}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := build(t, tt.n, tt.options)
			head := journal.Sequence(tt.n + 1)
			for _, want := range [][2]journal.Sequence{{1, 0}, {0, 0}, {2, 3}, {head, 0}, {head / 2, 0}, {head/2 + 1, head - 1}, {head + 1, 0}} {
				got, _, err := events(t, path, Options{From: want[0], To: want[1]})
				if err != nil {
					t.Fatalf("%v: %v", want, err)
				}
				if diff := differ(reference(t, path, want[0], want[1]), got); diff != "" {
					t.Errorf("%v: %s", want, diff)
				}
			}
			compareFigures(t, path)
		})
	}
}

func compareFigures(t *testing.T, path string) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if diff := cmp.Diff(r.Info(), f.Info); diff != "" {
		t.Errorf("info (-reader +scan):\n%s", diff)
	}
	stats, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	got := journal.Stats{Head: f.Head.Sequence, Epoch: f.Head.Epoch, Horizon: f.Head.Horizon, Events: f.Head.Events, EventBytes: f.Head.Bytes, FreeBytes: int64(f.FreePages) * int64(f.PageSize)}
	stats.First, stats.FileBytes, stats.Pods, stats.Tombstones = 0, 0, 0, 0
	if diff := cmp.Diff(stats, got); diff != "" {
		t.Errorf("stats (-reader +scan):\n%s", diff)
	}
	wantAcks, err := r.Acks()
	if err != nil {
		t.Fatal(err)
	}
	gotAcks, err := f.Acks()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAcks, gotAcks); diff != "" {
		t.Errorf("acks (-reader +scan):\n%s", diff)
	}
	if index, err := f.Index(); err != nil || f.Head.Indexed == f.Head.Sequence && f.Head.Sequence > 50 && len(index) == 0 {
		t.Errorf("index: %d entries, %v", len(index), err)
	}
}

func TestScan_Keep(t *testing.T) {
	path := build(t, 3000, journal.Options{Retention: journal.Retention{MaxEvents: 10000}})
	got, next, err := events(t, path, Options{Keep: func(r *Record) bool { return r.Kind == journal.KindRejected }})
	if err != nil || next != 3002 {
		t.Fatalf("got %d, %v", next, err)
	}
	var want []journal.Event
	for _, e := range reference(t, path, 1, 0) {
		if e.Kind == journal.KindRejected {
			want = append(want, e)
		}
	}
	if diff := differ(want, got); diff != "" || len(got) == 0 {
		t.Errorf("%d kept (-want +got):\n%s", len(got), diff)
	}
}

// TestScan_StopsEarly: the caller may leave at any record.
func TestScan_StopsEarly(t *testing.T) {
	path := build(t, 2000, journal.Options{Retention: journal.Retention{MaxEvents: 10000}})
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	next, err := f.Scan(t.Context(), Options{}, func(*Record) bool { n++; return n < 700 })
	if n != 700 || next.Sequence != 700 || err != nil {
		t.Errorf("got %d records, next %d, %v", n, next.Sequence, err)
	}
}

// TestScan_HandsOver: damage ends the scan at the first record that is not right,
// with all before it given.
func TestScan_HandsOver(t *testing.T) {
	sound := build(t, 600, journal.Options{})
	content, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	want := reference(t, sound, 1, 0)
	for _, seq := range []int{2, 77, 300, 601} {
		path := filepath.Join(t.TempDir(), journal.FileName)
		damaged := bytes.Clone(content)
		found := false
		for at := 0; ; at++ { // free pages hold copies: all are damaged
			i := bytes.Index(damaged[at:], []byte(marker(seq - 2)[:40]))
			if i < 0 {
				break
			}
			at += i
			damaged[at] ^= 1
			found = true
		}
		if !found {
			continue // its status is compressed or random
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got, next, err := events(t, path, Options{})
		if !errors.Is(err, ErrUnsound) || next != journal.Sequence(seq) {
			t.Errorf("event %d: got next %d, %v", seq, next, err)
		}
		if diff := differ(want[:seq-1], got); diff != "" {
			t.Errorf("event %d: before it (-want +got):\n%.1000s", seq, diff)
		}
	}
}

// TestScan_AnyDamage: whatever is damaged, nothing wrong is given, nothing panics.
func TestScan_AnyDamage(t *testing.T) {
	sound := build(t, 400, journal.Options{})
	content, err := os.ReadFile(sound)
	if err != nil {
		t.Fatal(err)
	}
	want := map[journal.Sequence]journal.Event{}
	for _, e := range reference(t, sound, 1, 0) {
		want[e.Sequence] = e
	}
	random := rand.New(rand.NewPCG(7, 7))
	path := filepath.Join(t.TempDir(), journal.FileName)
	unsound := 0
	for round := range 300 {
		b := bytes.Clone(content)
		for range 1 + random.IntN(3) {
			at, n := random.IntN(len(b)), 1
			switch random.IntN(3) {
			case 0:
				n = min(1+random.IntN(4096), len(b)-at)
			case 1: // the fields of a page header
				at = at/4096*4096 + random.IntN(48)
			}
			for i := range n {
				b[at+i] = byte(random.Uint32())
			}
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := events(t, path, Options{})
		if err != nil && !errors.Is(err, ErrUnsound) {
			t.Errorf("round %d: %v", round, err)
		}
		if err != nil {
			unsound++
		} else if len(got) != len(want) {
			t.Errorf("round %d: %d events without an error", round, len(got))
		}
		for _, e := range got {
			if !reflect.DeepEqual(want[e.Sequence], e) {
				t.Fatalf("round %d: event %d is wrong", round, e.Sequence)
			}
		}
	}
	if unsound < 20 {
		t.Errorf("only %d rounds found damage", unsound)
	}
}

// TestScan_CutWhileMapped: a file that somebody cuts is unsound, not the end of
// the process.
func TestScan_CutWhileMapped(t *testing.T) {
	path := build(t, 3000, journal.Options{Retention: journal.Retention{MaxEvents: 10000}})
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	_, err = f.Scan(t.Context(), Options{}, func(*Record) bool {
		if n++; n == 1 {
			if err := os.Truncate(path, 64<<10); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	if !errors.Is(err, ErrUnsound) {
		t.Errorf("got %v after %d records", err, n)
	}
}

func TestOpen_Refuses(t *testing.T) {
	path := build(t, 10, journal.Options{})
	edit := func(change func(tx *bolt.Tx) error) func(string) {
		return func(path string) {
			db, err := bolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Update(change), db.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name   string
		change func(path string)
		want   string
	}{
		{"missing", func(p string) { os.Remove(p) }, "no such file"},
		{"empty", func(p string) { os.Truncate(p, 0) }, "meta page"},
		{"cut", func(p string) { os.Truncate(p, 12288) }, "don't fit"},
		{"newer", edit(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{0, 0, 0, 2}) }), "another format"},
		{"of another program", edit(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("acks")) }), "no bucket acks"},
		{"head damaged", edit(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("head"), []byte("x")) }), "not sealed"},
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), journal.FileName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			tt.change(path)
			f, err := Open(path)
			if !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v; want %q", f, err, tt.want)
			}
		})
	}
	t.Run("in use", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), journal.FileName)
		j, err := journal.Open(path, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if _, err := Open(path); !errors.Is(err, ErrUnsound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestOpen_Foreign: keys and buckets of others are seen, and left out.
func TestOpen_Foreign(t *testing.T) {
	path := build(t, 10, journal.Options{})
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("events")).Put([]byte("alarm"), []byte("x")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	if _, err := f.Scan(t.Context(), Options{}, func(*Record) bool { n++; return true }); err != nil || n != 11 || !f.Foreign {
		t.Errorf("got %d events, foreign %v, %v", n, f.Foreign, err)
	}
}
