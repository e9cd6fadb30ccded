// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func salvage(t *testing.T, path string) (SalvageResult, string) {
	t.Helper()
	before := digest(path)
	out := filepath.Join(t.TempDir(), "out.db")
	got, err := Salvage(t.Context(), path, out)
	if err != nil {
		t.Fatal(err)
	}
	if digest(path) != before {
		t.Error("the source changed")
	}
	return got, out
}

func TestSalvageHealthy(t *testing.T) {
	path := filled(t, 300)
	j, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := set("pod-1", "with object")
	e.Object = []byte("object")
	mustAppend(t, j, e, removed("pod-2"))
	j.PutAck(Ack{UID: "pod-3", LiveUID: "pod-3", Version: 2})
	want := newest(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	got, out := salvage(t, path)
	if got.Events != 303 || got.Pods != 9 || got.Acks != 1 || got.Objects != 1 || got.LostEvents != 0 {
		t.Errorf("%+v", got)
	}
	k := open(t, out, Options{})
	if diff := cmp.Diff(want, newest(t, k)); diff != "" {
		t.Error(diff)
	}
	if next := mustAppend(t, k, set("pod-1", "next"))[0]; next.Version < want["pod-1"].Version+1 {
		t.Errorf("version %d", next.Version)
	}
}

// TestSalvageLostPage: the lost range is named, all else is kept, and no version
// of a lost event is given away again.
func TestSalvageLostPage(t *testing.T) {
	path := filled(t, 500)
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	full := map[string]Version{}
	for e := range r.Newest() {
		full[string(e.UID)] = e.Version
	}
	r.Close()
	lost := 0
	patch(t, path, func(b []byte) []byte {
		page := b[bytes.LastIndex(b, []byte(marker(499)))&^4095:][:4096]
		lost = int(binary.LittleEndian.Uint16(page[10:]))
		clear(page)
		return b
	})
	got, out := salvage(t, path)
	// The page of the newest events: up to the end nothing shows what is missing,
	// except that the engine's copies of older pages may still hold some.
	if got.Events < 500-lost || got.Events >= 500 {
		t.Errorf("%d events of 500, the page had %d", got.Events, lost)
	}
	j := open(t, out, Options{})
	for uid, pod := range newest(t, j) {
		next := mustAppend(t, j, set(uid, "next"))[0]
		if pod.Version == full[string(uid)] && next.Version <= pod.Version {
			t.Errorf("%s: version %d again", uid, next.Version)
		}
	}
}

func TestSalvageMiddleGap(t *testing.T) {
	path := filled(t, 500)
	patch(t, path, func(b []byte) []byte {
		clear(b[bytes.Index(b, []byte(marker(250)))&^4095:][:4096])
		return b
	})
	got, out := salvage(t, path)
	if len(got.Lost) == 0 || got.LostEvents != uint64(500-got.Events) {
		t.Fatalf("%+v", got)
	}
	if r := got.Lost[0]; r.From > 250 || r.To < 250 {
		t.Errorf("lost %+v, want it to hold 250", got.Lost)
	}
	j := open(t, out, Options{})
	pod := newest(t, j)["pod-1"]
	if next := mustAppend(t, j, set("pod-1", "next"))[0]; next.Version < pod.Version+1+Version(got.LostEvents) {
		t.Errorf("version %d after %d with %d events lost", next.Version, pod.Version, got.LostEvents)
	}
}

// TestSalvageAgain: what is salvaged is a journal like any other. History in it
// counts as complete but for the gaps, and what it loses is named in its turn.
func TestSalvageAgain(t *testing.T) {
	horizon := func(path string) Sequence {
		r, err := OpenReadOnly(path, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := r.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return s.Horizon
	}
	lose := func(path string, i int) {
		patch(t, path, func(b []byte) []byte {
			clear(b[bytes.Index(b, []byte(marker(i)))&^4095:][:4096])
			return b
		})
	}
	_, out := salvage(t, filled(t, 900))
	if got := horizon(out); got != 0 {
		t.Errorf("trimmed up to %d, of a journal from which nothing was trimmed", got)
	}
	lose(out, 450)
	first, out := salvage(t, out)
	if first.LostEvents == 0 || len(first.Lost) != 1 {
		t.Fatalf("got %+v", first)
	}
	if got, want := horizon(out), first.Lost[0].To; got != want {
		t.Errorf("trimmed up to %d, want %d, where the gap ends", got, want)
	}
	lose(out, 890)
	second, out := salvage(t, out)
	if second.LostEvents == 0 || second.LostKept != 0 || second.Lost[0].From <= first.Lost[0].To {
		t.Errorf("got %+v", second)
	}
	lose(out, 100) // before a gap that is known of
	third, out := salvage(t, out)
	if third.LostEvents != 0 || third.LostKept == 0 || third.LostKept != uint64(second.Events+1-third.Events) {
		t.Errorf("got %+v, want the %d events of %d that are not there", third, second.Events+1-third.Events, second.Events+1)
	}
	r, err := OpenReadOnly(out, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.lastHead.skipped(); got <= Version(third.LostKept) {
		t.Errorf("%d versions are skipped, want more than the %d events that are lost", got, third.LostKept)
	}
	r.Close()
	open(t, out, Options{})
}

func TestSalvageWithoutTree(t *testing.T) {
	path := filled(t, 200)
	patch(t, path, func(b []byte) []byte { clear(b[:8192]); return b }) // both meta pages
	got, out := salvage(t, path)
	if got.Events != 200 {
		t.Errorf("%+v", got)
	}
	open(t, out, Options{})
}

func TestSalvageRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("text "), 9999), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(t.Context(), text, text+".out"); !errors.Is(err, ErrNotJournal) {
		t.Errorf("got %v", err)
	}
	if _, err := Salvage(t.Context(), filled(t, 3), text); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got := names(t, filepath.Dir(text)); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestG8_RandomDamage: whatever is changed in a file, it is refused, read with
// the damage named, or read right. Never a crash, never wrong data. What salvage
// writes is always whole.
func TestG8_RandomDamage(t *testing.T) {
	path := filled(t, 400)
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	truth := map[Sequence]Event{}
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for e := range r.Events(1, 0) {
		truth[e.Sequence] = e
	}
	r.Close()
	used := 0
	for _, m := range []int{0, 4096} {
		meta, _ := parseBoltMeta(original[m:])
		used = max(used, int(meta.highWater)*4096)
	}
	rounds := 200
	if testing.Short() || raceDetector() {
		rounds = 40
	}
	dir := fastDir(t)
	for round := range rounds {
		rng := rand.New(rand.NewPCG(7, uint64(round)))
		b := bytes.Clone(original)
		switch round % 4 {
		case 0: // one byte
			b[rng.IntN(used)] ^= byte(1 + rng.IntN(255))
		case 1: // the head of a page
			b[rng.IntN(used/4096)*4096+rng.IntN(80)] ^= byte(1 + rng.IntN(255))
		case 2: // a zeroed page
			clear(b[rng.IntN(used/4096)*4096:][:4096])
		case 3: // a sector of noise
			copy(b[rng.IntN(used/512)*512:][:512], noise(round, 512))
		}
		damaged := filepath.Join(dir, "damaged.db")
		if err := os.WriteFile(damaged, b, 0o600); err != nil {
			t.Fatal(err)
		}
		checkDamaged(t, round, damaged, truth)
		out := filepath.Join(dir, "out.db")
		if _, err := Salvage(t.Context(), damaged, out); err != nil {
			t.Errorf("round %d: salvage: %v", round, err)
		}
		os.Remove(out)
	}
}

func checkDamaged(t *testing.T, round int, path string, truth map[Sequence]Event) {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		return // refused
	}
	defer r.Close()
	good, bad := 0, 0
	for e, err := range r.Events(1, 0) {
		if err != nil {
			bad++
			continue
		}
		good++
		if diff := cmp.Diff(truth[e.Sequence], e); diff != "" {
			t.Errorf("round %d: wrong data at %d:\n%s", round, e.Sequence, diff)
		}
	}
	if good+bad == 0 || bad == 0 && good < len(truth) {
		if !r.suspect { // the commit before is a legal state, and said to be one
			t.Errorf("round %d: %d of %d events, and no damage named", round, good, len(truth))
		}
	}
	if _, err := r.Verify(t.Context(), nil); err != nil {
		t.Errorf("round %d: verify: %v", round, err)
	}
}
