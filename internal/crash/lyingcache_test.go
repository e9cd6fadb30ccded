// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

// platter is what the disk itself holds of the journal, and what a power cut
// leaves. A sync brings the pages that were written since; one that fails does
// not, and the system then takes those pages for clean: no later sync brings
// them, though whoever reads the file finds them there. That is how Linux treats
// EIO of fsync.
type platter struct {
	mu    sync.Mutex
	path  string
	pages map[int64][]byte
	dirty map[int64]bool
	size  int64
	// fail says which syncs fail, counted from 1 since it was set.
	fail  map[int]bool
	syncs int
	lost  int // pages that a failed sync dropped
	// images are what power cuts since they were last taken would have left.
	images [][]byte
	random *rand.Rand
	err    error
}

const (
	cachePage = 4096
	lyingEnv  = "STATUSSTORE_LYING_CACHES" // how many random runs
)

func (p *platter) handle(c crash.Call) syscall.Errno {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Path != p.path {
		return 0
	}
	switch c.Name {
	case crash.Pwrite:
		for at := c.Offset / cachePage; at*cachePage < c.Offset+c.Length; at++ {
			p.dirty[at] = true
		}
	case crash.Fsync, crash.Fdatasync:
		p.images = append(p.images, p.image(0), p.image(2), p.image(1))
		if p.syncs++; p.fail[p.syncs] {
			p.lost += len(p.dirty)
			clear(p.dirty)
			return syscall.EIO
		}
		p.err = errors.Join(p.err, p.sync())
	}
	return 0
}

// sync copies what is dirty from the file.
func (p *platter) sync() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p.size = info.Size()
	for at := range p.dirty {
		if p.pages[at], err = p.read(f, at); err != nil {
			return err
		}
	}
	clear(p.dirty)
	return nil
}

func (p *platter) read(f *os.File, at int64) ([]byte, error) {
	page := make([]byte, cachePage)
	if n, err := f.ReadAt(page, at*cachePage); err != nil && (err != io.EOF || n == 0) {
		return nil, err
	}
	return page, nil
}

// image is what a power cut leaves now. Of the pages that are not synced yet each
// one in so many is there, none for 0.
func (p *platter) image(oneIn int) []byte {
	image := make([]byte, p.size)
	put := func(at int64, page []byte) {
		if at*cachePage < p.size {
			copy(image[at*cachePage:], page)
		}
	}
	for at, page := range p.pages {
		put(at, page)
	}
	if oneIn == 0 {
		return image
	}
	f, err := os.Open(p.path)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return image
	}
	defer f.Close()
	for _, at := range slices.Sorted(maps.Keys(p.dirty)) {
		if p.random.IntN(oneIn) == 0 {
			page, err := p.read(f, at)
			p.err = errors.Join(p.err, err)
			put(at, page)
		}
	}
	return image
}

// begin takes the file as it is for durable, and lets some syncs fail from now on.
func (p *platter) begin(path string, fail ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		p.err = err
		return
	}
	p.path, p.pages, p.dirty, p.fail = path, map[int64][]byte{}, map[int64]bool{}, map[int]bool{}
	p.syncs, p.lost, p.images = 0, 0, nil
	for at := range info.Size() / cachePage {
		p.dirty[at] = true
	}
	p.err = p.sync()
	for _, n := range fail {
		p.fail[n] = true
	}
}

// cuts returns what power cuts since the last call would have left: at each sync,
// and now.
func (p *platter) cuts() ([][]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	images := append(p.images, p.image(0))
	p.images = nil
	return images, p.err
}

// TestG10_FaultLyingCache fails syncs on a disk that keeps what the page cache
// pretends: after each event that is accepted, a power cut must leave it, and
// never a damaged file or an event that was refused.
func TestG10_FaultLyingCache(t *testing.T) {
	if os.Getenv(childEnv) != "fault" {
		out, skipped := inChild(t, "fault")
		if skipped != "" {
			t.Skip(skipped)
		}
		t.Logf("%s", bytes.TrimSpace(regexp.MustCompile(`(?m)^.*\bpower cuts after\b.*$`).Find(out)))
		return
	}
	rng := rand.New(rand.NewPCG(uint64(number(t, seedEnv, 1)), 7))
	p := &platter{random: rand.New(rand.NewPCG(uint64(number(t, seedEnv, 1)), 8))}
	if err := crash.Intercept(p.handle, crash.Fsync, crash.Fdatasync, crash.Pwrite); err != nil {
		unsupported(err)
	}
	start, cuts, lost, ended := time.Now(), 0, 0, 0
	runs := [][]int{{1}, {2}, {3}, {4}, {1, 2}, {1, 3}, {2, 3}, {2, 4}, {1, 2, 3, 4, 5, 6}}
	for range number(t, lyingEnv, 6) {
		var fail []int
		for range 1 + rng.IntN(4) {
			fail = append(fail, 1+rng.IntN(20))
		}
		runs = append(runs, fail)
	}
	for _, fail := range runs {
		t.Run(fmt.Sprint(fail), func(t *testing.T) {
			n, dropped, dead := lieAndCut(t, p, rng, fail)
			cuts += n
			if dead {
				ended++
			}
			lost += dropped
		})
	}
	t.Logf("%d power cuts after %d runs of failing syncs, which dropped %d pages; %d runs ended the process, %v", cuts, len(runs), lost, ended, time.Since(start).Round(time.Millisecond))
	if cuts < 5*len(runs) || lost < len(runs) {
		t.Error("not much was tested")
	}
}

// lieAndCut appends while syncs fail, and looks at what each power cut leaves.
func lieAndCut(t *testing.T, p *platter, rng *rand.Rand, fail []int) (cuts, dropped int, dead bool) {
	dir := fastDir(t)
	path, after := filepath.Join(dir, journal.FileName), filepath.Join(dir, "after.db")
	j, err := journal.Open(path, journal.Options{Retention: journal.Retention{MaxEvents: 30}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // what it says of a platter that lies is of no interest
		p.begin(path)
		_ = j.Close()
	}()
	accepted := map[types.UID]journal.Version{}
	for i := range 5 {
		got, err := j.Append(t.Context(), pod(types.UID(fmt.Sprint("p", i)), journal.KindSet, 900))
		if err != nil {
			t.Fatal(err)
		}
		accepted[got[0].UID] = got[0].Version
	}
	p.begin(path, fail...)
	sizes := []int{40, 900, 9000, 60_000}
	for i := range 10 {
		uid := types.UID(fmt.Sprint("p", rng.IntN(6)))
		before := accepted[uid]
		got, err := j.Append(t.Context(), pod(uid, journal.KindSet, sizes[rng.IntN(len(sizes))]))
		if err == nil {
			accepted[uid] = got[0].Version
			if i%3 == 0 {
				j.PutAck(journal.Ack{UID: uid, LiveUID: uid, Version: got[0].Version})
			}
		} else if !errors.Is(err, syscall.EIO) && !errors.Is(err, journal.ErrDegraded) {
			t.Fatal(err)
		}
		select {
		case <-j.Failed():
			dead = true
		default:
		}
		images, err := p.cuts()
		if err != nil {
			t.Fatal(err)
		}
		for n, image := range images {
			if err := os.WriteFile(after, image, 0o600); err != nil {
				t.Fatal(err)
			}
			cuts++
			over := n == len(images)-1 && !dead
			afterCut(t, after, fmt.Sprintf("step %d, image %d", i, n), accepted, uid, before, over)
		}
		if dead || t.Failed() {
			break
		}
	}
	return cuts, p.lost, dead
}

// afterCut opens what a power cut left. The pod that was being written, unless
// that is over, has the version before or the one after.
func afterCut(t *testing.T, path, when string, accepted map[types.UID]journal.Version, writing types.UID, before journal.Version, over bool) {
	t.Helper()
	d, err := describe(path)
	if err != nil || len(d.problems) > 0 || d.suspect {
		t.Fatalf("%s: a power cut leaves %v %q, suspect %v", when, err, d.problems, d.suspect)
	}
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found, err := know(r)
	if err != nil {
		t.Fatal(err)
	}
	for uid, version := range accepted {
		got := found.newest[uid].Version
		if got != version && (over || uid != writing || got != before && got != before+1) {
			t.Errorf("%s: a power cut leaves %s at version %d, accepted was %d", when, uid, got, version)
		}
	}
}
