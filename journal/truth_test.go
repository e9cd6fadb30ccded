// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// truth is what a sound file holds.
type truth struct {
	info    Info
	head    Sequence
	horizon Sequence // what is missing below is history that may go at any time
	events  map[Sequence]Event
	newest  map[types.UID]Event
	acks    map[types.UID]Ack
	objects map[types.UID]string
}

// truthOf reads a sound file.
func truthOf(t testing.TB, path string) truth {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := truth{info: r.Info(), head: r.Head(), horizon: r.lastHead.Horizon, events: map[Sequence]Event{}, newest: map[types.UID]Event{}, objects: map[types.UID]string{}}
	for e, err := range r.Events(1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		w.events[e.Sequence] = e
	}
	for e, err := range r.Newest() {
		if err != nil {
			t.Fatal(err)
		}
		w.newest[e.UID] = e
	}
	if w.acks, err = r.Acks(); err != nil {
		t.Fatal(err)
	}
	for uid, o := range r.Objects() {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		w.objects[uid] = string(o.Object)
	}
	return w
}

// finding is what reading a damaged file has come to.
type finding struct {
	named []error // errors that the file's damage led to
	wrong []string
}

func (f *finding) lie(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// judge reads everything there is. Whatever is served must be true, and what is
// not served must be named. The writer's opened event comes on top.
func (w truth) judge(v interface {
	Info() Info
	Acks() (map[types.UID]Ack, error)
}, events, newest func(func(Event, error) bool), objects func(func(types.UID, ObjectResult) bool)) (f finding) {
	got := map[Sequence]bool{}
	failed := func(err error) bool {
		if err != nil {
			f.named = append(f.named, err)
		}
		return err != nil
	}
	n := len(f.named)
	for e, err := range events {
		if failed(err) {
			continue
		}
		want, known := w.events[e.Sequence]
		if !known && e.Kind == KindOpened && e.Sequence > w.head {
			continue
		}
		if !reflect.DeepEqual(want, e) { // cmp would take a hundred times as long
			f.lie("event %d:\n%s", e.Sequence, cmp.Diff(want, e))
		}
		got[e.Sequence] = true
	}
	if len(f.named) == n {
		for seq := range w.events {
			if !got[seq] && seq > w.horizon {
				f.lie("event %d is missing, and no error", seq)
			}
		}
	}
	pods := map[types.UID]bool{}
	n = len(f.named)
	for e, err := range newest {
		if failed(err) {
			continue
		}
		if !reflect.DeepEqual(w.newest[e.UID], e) {
			f.lie("newest of %s:\n%s", e.UID, cmp.Diff(w.newest[e.UID], e))
		}
		pods[e.UID] = true
	}
	if len(f.named) == n && len(pods) < len(w.newest) {
		f.lie("%d of %d pods, and no error", len(pods), len(w.newest))
	}
	acks, err := v.Acks()
	if !failed(err) {
		if !reflect.DeepEqual(w.acks, acks) {
			f.lie("acks:\n%s", cmp.Diff(w.acks, acks))
		}
	}
	seen := 0
	n = len(f.named)
	for uid, o := range objects {
		if failed(o.Err) {
			continue
		}
		if w.objects[uid] != string(o.Object) {
			f.lie("object %s is %q", uid, o.Object)
		}
		seen++
	}
	if len(f.named) == n && seen < len(w.objects) {
		f.lie("%d of %d objects, and no error", seen, len(w.objects))
	}
	if i := v.Info(); len(i.Damage) == 0 && (i.Node != w.info.Node || !i.Created.Equal(w.info.Created)) {
		f.lie("it is said to be of %q, %v", i.Node, i.Created)
	}
	return f
}

// refusal checks an error of opening: typed, with the file's name.
func refusal(err error, path string) error {
	known := []error{ErrCorrupt, ErrNotJournal, ErrTruncated, ErrEmpty, ErrNewerFormat, ErrWrongNode}
	if !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("refused with an error of no kind: %w", err)
	}
	return nil
}

// outcome of one damage.
type outcome uint8

const (
	harmless outcome = iota // nothing read differs
	detected
	older // the commit before is served, and said to be suspect
)

// examineReader opens a damaged file for reading and compares.
func examineReader(path string, states []truth) (outcome, error) {
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		return detected, refusal(err, path)
	}
	defer r.Close()
	problems := 0
	if _, err := r.Verify(context.Background(), func(Problem) { problems++ }); err != nil {
		return detected, fmt.Errorf("verify: %w", err)
	}
	suspect := r.Info().Suspect
	var all []string
	for i, w := range states {
		if i > 0 && !suspect {
			break // an older state is legal only if it is said to be one
		}
		f := w.judge(r, r.Events(1, 0), r.Newest(), r.Objects())
		if len(f.wrong) > 0 {
			all = append(all, f.wrong...)
			continue
		}
		switch {
		case len(f.named) > 0 && problems == 0:
			return detected, fmt.Errorf("verify finds nothing, reading finds %v", f.named[0])
		case suspect:
			return older, nil
		case problems > 0:
			return detected, nil
		}
		return harmless, nil
	}
	return detected, fmt.Errorf("wrong data is served, %d problems, suspect %v: %s", problems, suspect, strings.Join(all, "\n"))
}

// examineWriter opens a damaged file for writing, compares, writes, and looks at
// what it has become.
func examineWriter(path string, states []truth) (outcome, error) {
	before, err := os.ReadFile(path)
	if err != nil {
		return detected, err
	}
	j, err := Open(path, Options{Node: goldenNode})
	if err != nil {
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			return detected, errors.New("it was refused and changed")
		}
		return detected, refusal(err, path)
	}
	defer j.Close()
	suspect := j.Info().Suspect
	var all []string
	for i, w := range states {
		if i > 0 && !suspect {
			break
		}
		f := w.judge(j, j.Events(1, 0), j.Newest(), j.Objects())
		if len(f.wrong) > 0 {
			all = append(all, f.wrong...)
			continue
		}
		got, err := j.Append(context.Background(), set("pod-0", "after the damage"))
		if err == nil && got[0].Version <= states[0].newest["pod-0"].Version {
			return detected, fmt.Errorf("version %d was given away before", got[0].Version)
		}
		if err := j.Close(); err != nil && !errors.Is(err, ErrDegraded) {
			return detected, fmt.Errorf("close: %w", err)
		}
		if err == nil {
			if err := stillTrue(path, w, got[0]); err != nil {
				return detected, err
			}
		}
		switch {
		case suspect:
			return older, nil
		case len(f.named) > 0 || err != nil:
			return detected, nil
		}
		return harmless, nil
	}
	return detected, fmt.Errorf("wrong data is served, suspect %v: %s", suspect, strings.Join(all, "\n"))
}

// stillTrue reads the file after it was written to: the accepted event is there
// unless something is said to be damaged, and nothing has become wrong.
func stillTrue(path string, w truth, accepted Event) error {
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		return refusal(err, path)
	}
	defer r.Close()
	found, named := false, false
	for e, err := range r.Events(1, 0) {
		want, known := w.events[e.Sequence]
		switch {
		case err != nil:
			named = true
		case e.Sequence == accepted.Sequence:
			found = string(e.Status) == string(accepted.Status) && e.Version == accepted.Version
		case known && !reflect.DeepEqual(want, e):
			return fmt.Errorf("event %d has changed", e.Sequence)
		}
	}
	if !found && !named {
		return errors.New("an accepted event is missing without an error")
	}
	return nil
}

// smallPage makes the small journal small: bbolt allows it, and the code under
// test must not depend on 4096.
const smallPage = 512

// smallJournal makes a closed journal of a few KiB with all kinds of events, acks,
// objects, a horizon and branch pages, and without unused space at its end.
func smallJournal(t testing.TB) []byte {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "statusstore-test-")
	if err != nil {
		dir = t.TempDir()
	}
	defer os.RemoveAll(dir)
	large, path := filepath.Join(dir, "large.db"), filepath.Join(dir, FileName)
	o := Options{Node: goldenNode, Retention: Retention{MaxEvents: 12}}
	fill := func(path string, events ...Event) {
		j, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if _, err := j.Append(context.Background(), e); err != nil {
				t.Fatal(err)
			}
		}
		j.PutAck(Ack{UID: "pod-0", LiveUID: "live-0", Version: 2, Time: time.Unix(1700000000, 0).UTC()})
		j.PutAck(Ack{UID: "pod-1", LiveUID: "live-1", Version: 1, Time: time.Unix(1700000000, 0).UTC()})
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var events []Event
	for i := range 16 {
		events = append(events, set(types.UID(fmt.Sprint("pod-", i%3)), fmt.Sprint("status ", i)))
	}
	with := set("pod-1", "with object")
	with.Object, with.Aux = []byte("object of pod-1"), []byte("aux")
	rejected := Event{Kind: KindRejected, UID: "pod-0", Attributes: map[string]string{AttrFrom: "Failed", AttrTo: "Running"}}
	fill(large, append(events, with, finished("pod-2", "Failed"), removed("pod-2"), rejected)...)
	compacted(t, large, path, smallPage)
	if err := os.WriteFile(path+MarkSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(path, set("pod-0", "last"))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	metas, _ := readMetas(bytes.NewReader(b))
	top := uint64(0)
	for _, m := range metas {
		top = max(top, m.highWater)
	}
	return b[:top*smallPage]
}

// compacted copies a journal into a file with pages of another size.
func compacted(t testing.TB, from, to string, pageSize int) {
	t.Helper()
	src, err1 := bolt.Open(from, 0o600, &bolt.Options{ReadOnly: true})
	dst, err2 := bolt.Open(to, 0o600, &bolt.Options{PageSize: pageSize})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bolt.Compact(dst, src, 0), dst.Close(), src.Close()); err != nil {
		t.Fatal(err)
	}
}

// statesOf reads the newest state of an image, and the one that is left if the
// newer meta page is damaged.
func statesOf(t testing.TB, dir string, image []byte, pageSize int) []truth {
	t.Helper()
	path := filepath.Join(dir, "states.db")
	write := func(b []byte) truth {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		return truthOf(t, path)
	}
	b := bytes.Clone(image)
	first, err1 := parseBoltMeta(b)
	second, err2 := parseBoltMeta(b[pageSize:])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	newest := 0
	if second.txid > first.txid {
		newest = pageSize
	}
	b[newest+pageHeaderSize+20] ^= 1
	return []truth{write(image), write(b)}
}
