// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestG8_EveryByte flips each byte of a small journal, one at a time. The damage
// is named, or nothing that is read differs. Where a reader sees no difference a
// writer is given every eighth: those are free pages and the unused ends of pages.
func TestG8_EveryByte(t *testing.T) {
	t.Parallel()
	image := smallJournal(t)
	dir := fastDir(t)
	states := statesOf(t, dir, image, smallPage)
	step := 1
	if testing.Short() || raceDetector() {
		step = 23
	}
	var (
		mu     sync.Mutex
		counts [2][3]int
		wg     sync.WaitGroup
	)
	const workers = 2
	for n := range workers {
		wg.Go(func() {
			path := filepath.Join(dir, string(rune('a'+n)), FileName)
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Error(err)
				return
			}
			for at := n * step; at < len(image); at += workers * step {
				b := bytes.Clone(image)
				b[at] ^= 1 << (at % 8)
				if at%16 > 7 {
					b[at] = ^image[at]
				}
				seen := detected
				for i, examine := range []func(string, []truth) (outcome, error){examineReader, examineWriter} {
					if i == 1 && seen == harmless && at/workers%8 != 0 {
						continue
					}
					err := os.WriteFile(path, b, 0o600)
					if n == 0 {
						err = errors.Join(err, os.WriteFile(path+MarkSuffix, []byte(markText), 0o600))
					} else { // taken for a copy that was put back
						os.Remove(path + MarkSuffix) //nolint:errcheck // a reader makes none
					}
					if err != nil {
						t.Error(err)
						return
					}
					got, err := examine(path, states)
					if err != nil {
						t.Errorf("byte %d (page %d, %#02x instead of %#02x): %v", at, at/smallPage, b[at], image[at], err)
					}
					seen = got
					mu.Lock()
					counts[i][got]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i, who := range []string{"reader", "writer"} {
		c := counts[i]
		t.Logf("%s: %d bytes flipped one at a time: %d detected, %d harmless, %d served the commit before and said so",
			who, c[0]+c[1]+c[2], c[detected], c[harmless], c[older])
		if c[detected] < len(image)/step/4 || c[older] == 0 {
			t.Errorf("%s: too little is detected", who)
		}
	}
}

// largeImages makes a journal of a few hundred pages and returns it as it was at
// two times: what a disk that loses a write keeps of a page is the older one.
func largeImages(t *testing.T, dir string) (earlier, image []byte) {
	t.Helper()
	path := filepath.Join(dir, "large", FileName)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		j, err := Open(path, Options{Node: goldenNode})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			var batch []Event
			for k := range 20 {
				e := set(types.UID(fmt.Sprint("pod-", (i*7+k)%40)), marker(round*1000+i*20+k)+marker(k))
				if (i+k)%5 == 0 {
					e.Object = []byte(fmt.Sprint("object ", round, i, k, marker(i)))
				}
				batch = append(batch, e)
			}
			for _, e := range mustAppend(t, j, batch...) {
				j.PutAck(Ack{UID: e.UID, LiveUID: e.UID, Version: e.Version})
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		earlier = image
		if image, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return earlier, image
}

// TestG8_LargeJournal damages a larger file in coarser ways, by a seeded dice.
func TestG8_LargeJournal(t *testing.T) {
	t.Parallel()
	const page = 4096
	dir := fastDir(t)
	earlier, image := largeImages(t, dir)
	states := statesOf(t, dir, image, page)
	metas, _ := readMetas(bytes.NewReader(image))
	used := int(max(metas[0].highWater, metas[1].highWater))
	at := func(b []byte, n int) []byte { return b[n*page:][:page] }
	kinds := []struct {
		name   string
		damage func(b []byte, dice *rand.Rand) []byte
	}{
		{"run of bytes", func(b []byte, dice *rand.Rand) []byte {
			from, n := dice.IntN(used*page), 1+dice.IntN(3*page)
			copy(b[from:min(from+n, used*page)], noise(dice.IntN(1000), n))
			return b
		}},
		{"zeroed page", func(b []byte, dice *rand.Rand) []byte { clear(at(b, dice.IntN(used))); return b }},
		{"swapped pages", func(b []byte, dice *rand.Rand) []byte {
			x, y := dice.IntN(used), dice.IntN(used)
			other := bytes.Clone(at(b, x))
			copy(at(b, x), at(b, y))
			copy(at(b, y), other)
			return b
		}},
		{"page over another", func(b []byte, dice *rand.Rand) []byte {
			copy(at(b, dice.IntN(used)), at(b, dice.IntN(used)))
			return b
		}},
		{"lost write of a page", func(b []byte, dice *rand.Rand) []byte {
			for {
				n := 2 + dice.IntN(min(used, len(earlier)/page)-2)
				if !bytes.Equal(at(b, n), at(earlier, n)) {
					copy(at(b, n), at(earlier, n))
					return b
				}
			}
		}},
		{"cut", func(b []byte, dice *rand.Rand) []byte { return b[:dice.IntN(used*page)] }},
	}
	rounds := 10
	if testing.Short() || raceDetector() {
		rounds = 3
	}
	for kind, k := range kinds {
		var readers, writers [3]int
		for round := range rounds {
			b := k.damage(bytes.Clone(image), rand.New(rand.NewPCG(uint64(kind), uint64(round))))
			path := filepath.Join(dir, "damaged.db")
			for i, examine := range []func(string, []truth) (outcome, error){examineReader, examineWriter} {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				if markOfOldRelease(t, path); round%3 == 0 { // taken for a copy that was put back
					os.Remove(path + MarkSuffix)
				}
				got, err := examine(path, states)
				if err != nil {
					t.Errorf("%s, kind %d round %d, %d: %v", k.name, kind, round, i, err)
				}
				if i == 0 {
					readers[got]++
				} else {
					writers[got]++
				}
			}
		}
		t.Logf("%s: %d times; detected %d by readers, %d by writers, harmless %d and %d, the commit before %d and %d", k.name, rounds,
			readers[detected], writers[detected], readers[harmless], writers[harmless], readers[older], writers[older])
	}
}

// TestC26_CutAtEachPage: a file that ends early is never taken for a whole one.
func TestC26_CutAtEachPage(t *testing.T) {
	image := smallJournal(t)
	dir := fastDir(t)
	states := statesOf(t, dir, image, smallPage)
	path := filepath.Join(dir, FileName)
	for size := 0; size < len(image); size += smallPage {
		for _, examine := range []func(string, []truth) (outcome, error){examineReader, examineWriter} {
			if err := os.WriteFile(path, image[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := examine(path, states); err != nil || got != detected {
				t.Errorf("cut at page %d: %v, %v", size/smallPage, got, err)
			}
		}
	}
}

// TestG8_DamageWhileRunning damages pages of a journal that is open, and goes on:
// what is read is right or an error, what was accepted is there or damage is named.
func TestG8_DamageWhileRunning(t *testing.T) {
	t.Parallel()
	const page = 4096
	dir := fastDir(t)
	_, image := largeImages(t, dir)
	w := statesOf(t, dir, image, page)[0]
	metas, _ := readMetas(bytes.NewReader(image))
	used := int(max(metas[0].highWater, metas[1].highWater))
	rounds := 24
	if testing.Short() || raceDetector() {
		rounds = 6
	}
	named, refused, harmless := 0, 0, 0
	for round := range rounds {
		dice := rand.New(rand.NewPCG(3, uint64(round)))
		path := filepath.Join(dir, fmt.Sprint("running-", round))
		if err := os.WriteFile(path, image, 0o600); err != nil {
			t.Fatal(err)
		}
		markOfOldRelease(t, path)
		j, err := Open(path, Options{Node: goldenNode, Retention: Retention{MaxEvents: len(w.events)}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 2 + dice.IntN(used-2)
		for n == int(metas[0].root) || n == int(metas[1].root) {
			n = 2 + dice.IntN(used-2) // in use all the time, so no disk is asked for it
		}
		switch round % 3 {
		case 0:
			_, err = f.WriteAt([]byte{^image[n*page+8+round%8]}, int64(n*page+8+round%8)) // type, count, overflow
		case 1:
			_, err = f.WriteAt(make([]byte, page), int64(n*page))
		case 2:
			_, err = f.WriteAt(noise(round, 300), int64(n*page+dice.IntN(page-300)))
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		got := w.judge(j, j.Events(1, 0), j.Newest(), j.Objects())
		for _, lie := range got.wrong {
			t.Errorf("round %d, page %d: %s", round, n, lie)
		}
		var accepted []Event
		for i := range 40 {
			var batch []Event
			for k := range 10 { // enough to trim history
				batch = append(batch, set(types.UID(fmt.Sprint("pod-", i)), fmt.Sprint("later ", i, k)))
			}
			events, err := j.Append(t.Context(), batch...)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Errorf("round %d, page %d: %v", round, n, err)
				}
				got.named = append(got.named, err)
				refused++
				break
			}
			accepted = append(accepted, events...)
		}
		if err := j.Close(); err != nil {
			got.named = append(got.named, err)
		}
		// An engine that has panicked keeps its lock until the process ends.
		after := path + ".after"
		if b, err := os.ReadFile(path); err != nil || os.WriteFile(after, b, 0o600) != nil || os.Remove(path) != nil {
			t.Fatal(err)
		}
		r, err := OpenReadOnly(after, ReadOptions{})
		if err != nil {
			if err := refusal(err, after); err != nil {
				t.Errorf("round %d, page %d: %v", round, n, err)
			}
			named++
			continue
		}
		found, horizon := map[Sequence]bool{}, r.lastHead.Horizon
		for e, err := range r.Events(1, 0) {
			if err != nil {
				got.named = append(got.named, err)
			}
			found[e.Sequence] = true
		}
		for _, e := range accepted {
			if !found[e.Sequence] && len(got.named) == 0 && e.Sequence > horizon {
				t.Errorf("round %d, page %d: accepted event %d is missing, and nothing is named", round, n, e.Sequence)
			}
		}
		if len(got.named) > 0 {
			named++
		} else {
			harmless++
		}
		r.Close()
	}
	t.Logf("%d pages damaged while the journal was open: %d named, %d of them by refusing to write, %d harmless", rounds, named, refused, harmless)
}

// TestG8_TrimMeetsABucket: one bit makes an old event a bucket to the engine, which
// then refuses to delete it. That is damage too, and named as such.
func TestG8_TrimMeetsABucket(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	j, err := Open(path, Options{Retention: Retention{MaxEvents: 5000}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		mustAppend(t, j, set("pod-a", fmt.Sprint(i)), set("pod-b", fmt.Sprint(i)), set("pod-c", strings.Repeat("x", 900)))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	le, changed := binary.LittleEndian, 0
	for at := 0; at < len(image); at += os.Getpagesize() {
		page := image[at : at+os.Getpagesize()]
		if le.Uint16(page[8:]) != leafPage {
			continue
		}
		element := page[pageHeaderSize:]
		if key := element[le.Uint32(element[4:]):]; le.Uint32(element[8:]) == 8 && binary.BigEndian.Uint64(key) > 60 && binary.BigEndian.Uint64(key) < 150 {
			le.PutUint32(element, bucketElement)
			changed++
		}
	}
	if changed == 0 {
		t.Fatal("no such leaf page")
	}
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	// Opening commits, and with that trims.
	j, err = Open(path, Options{Retention: Retention{MaxEvents: 50}})
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want %v", err, ErrCorrupt)
	}
	if err == nil {
		j.Close()
	}
}
