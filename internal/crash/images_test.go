// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
)

// How the images can be chosen from outside.
const (
	imagesEnv = "STATUSSTORE_CRASH_IMAGES" // how many in all, 600 unless said otherwise
	seedEnv   = "STATUSSTORE_CRASH_SEED"   // of the draw, 1 unless said otherwise
	replayEnv = "STATUSSTORE_CRASH_REPLAY" // a kept image, for TestCrashReplay
)

// TestG1_CrashImages_Recorded records which writes were ordered before which, as
// the kernel was told, and opens what power cuts could have left: always a state
// that was, never one that was accepted later than that, never a crash.
func TestG1_CrashImages_Recorded(t *testing.T) {
	if name := os.Getenv("STATUSSTORE_CRASH_SCENARIO"); os.Getenv(childEnv) == "record" {
		for _, s := range scenarios {
			if s.name == name {
				s.save(t, os.Getenv("STATUSSTORE_CRASH_OUT"))
			}
		}
		return
	}
	recordings := map[string]recording{}
	for _, s := range scenarios {
		out := filepath.Join(fastDir(t), "recording")
		if _, skipped := inChild(t, "record", "STATUSSTORE_CRASH_SCENARIO="+s.name, "STATUSSTORE_CRASH_OUT="+out); skipped != "" {
			t.Skip(skipped)
		}
		recordings[s.name] = load(t, out)
	}
	checkImages(t, recordings, number(t, imagesEnv, 600))
}

// TestG1_CrashImages_BeforeAfter does the same without watching the process, from
// the file before and after each commit and the order in which bbolt writes.
func TestG1_CrashImages_BeforeAfter(t *testing.T) {
	recordings := map[string]recording{}
	for _, s := range scenarios {
		if s.oneCommit {
			recordings[s.name] = record(t, s, false)
		}
	}
	checkImages(t, recordings, number(t, imagesEnv, 600)/2)
}

// image is one draw: which stage, and with which random numbers.
type image struct {
	scenario string
	stage    int
	number   int
}

// checkImages draws n images of the recordings, each stage alike, and has child
// processes open them.
func checkImages(t *testing.T, recordings map[string]recording, n int) {
	t.Helper()
	seed := uint64(number(t, seedEnv, 1))
	if testing.Short() {
		n = min(n, 100)
	}
	// A stage with one image needs no second draw.
	var open, all []image
	for _, s := range scenarios {
		rec, ok := recordings[s.name]
		if !ok {
			continue
		}
		for i := range rec.Log.Stages {
			if rec.Log.Stages[i].Settled() {
				all = append(all, image{s.name, i, len(all)})
			} else {
				open = append(open, image{s.name, i, 0})
			}
		}
	}
	settled := len(all)
	for len(all) < max(n, settled+len(open)) {
		next := open[(len(all)-settled)%len(open)]
		next.number = len(all)
		all = append(all, next)
	}
	t.Logf("%d stages, %d of them with more than one image, seed %d", settled+len(open), len(open), seed)

	var next atomic.Int64
	var tally counts
	var wg sync.WaitGroup
	start := time.Now()
	for range 2 {
		wg.Go(func() {
			c := &checker{t: t, seed: seed, dir: filepath.Join(fastDir(t), "image"), recordings: recordings, tally: &tally}
			defer c.close()
			for i := next.Add(1) - 1; i < int64(len(all)) && !t.Failed(); i = next.Add(1) - 1 {
				c.check(all[i])
			}
		})
	}
	wg.Wait()
	t.Logf("%d images in %v: %v", tally.images, time.Since(start).Round(time.Millisecond), &tally)
	if !t.Failed() {
		tally.plausible(t)
	}
}

// counts says what the images turned out to be.
type counts struct {
	mu                                     sync.Mutex
	images, before, after, torn, suspected int
}

func (c *counts) String() string {
	return fmt.Sprintf("%d the state before, %d the state after, %d with a torn meta page of which %d were noticed; 0 anything else",
		c.before, c.after, c.torn, c.suspected)
}

// plausible: draws that only ever give one outcome test nothing.
func (c *counts) plausible(t *testing.T) {
	t.Helper()
	if c.before < c.images/10 || c.after < c.images/10 || c.torn > 20 && c.suspected == 0 {
		t.Errorf("the images are too much alike: %v", c)
	}
}

type checker struct {
	t          *testing.T
	seed       uint64
	dir        string
	recordings map[string]recording
	child      *crash.Child
	tally      *counts
}

func (c *checker) check(i image) {
	rec := c.recordings[i.scenario]
	stage := &rec.Log.Stages[i.stage]
	img := rec.Log.Image(stage, rand.New(rand.NewPCG(c.seed, uint64(i.number))))
	at, torn := img.TornAt["journal.db"]
	torn = torn && at < 2*4096
	q := checkRequest{Dir: c.dir, Allowed: rec.States[stage.From : stage.To+1], Limit: rec.Limit, Torn: torn || rec.Suspect, Skips: rec.Suspect}
	if err := img.Write(c.dir); err != nil {
		c.t.Error(err)
		return
	}
	a, err := c.ask(q)
	if err == nil && a.Problem == "" {
		c.count(a, len(q.Allowed), torn)
		return
	}
	why := a.Problem
	if err != nil {
		why = err.Error()
	}
	c.t.Errorf("image %d of scenario %s, %s\n%s\n%s\n%s", i.number, i.scenario, stage.Label, img.What, why, c.keep(img, q, i))
}

func (c *checker) count(a checkAnswer, allowed int, torn bool) {
	c.tally.mu.Lock()
	defer c.tally.mu.Unlock()
	c.tally.images++
	if a.Found == allowed-1 {
		c.tally.after++
	} else {
		c.tally.before++
	}
	if torn {
		c.tally.torn++
		if a.Suspect {
			c.tally.suspected++
		}
	}
}

// ask uses the child, or a new one if the last image has killed it.
func (c *checker) ask(q checkRequest) (a checkAnswer, err error) {
	if c.child == nil {
		if c.child, err = crash.StartChild(childEnv + "=check"); err != nil {
			return a, err
		}
	}
	if err = c.child.Ask(q, &a, 30*time.Second); err != nil {
		c.child = nil
	}
	return a, err
}

func (c *checker) close() {
	if c.child != nil {
		if err := c.child.Close(); err != nil {
			c.t.Error(err)
		}
	}
}

// keep writes the image where it stays and says how to look at it again.
func (c *checker) keep(img *crash.Image, q checkRequest, i image) string {
	dir := keep(c.t)
	q.Dir = filepath.Join(dir, "image")
	request, err := json.MarshalIndent(q, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "request.json"), request, 0o600)
	}
	if err == nil {
		err = img.Write(q.Dir)
	}
	if err != nil {
		return fmt.Sprintf("it could not be kept: %v", err)
	}
	return fmt.Sprintf("kept in %s; again: %s=%s go test ./internal/crash -run CrashReplay\nall of this run: %s=%d %s=%d go test ./internal/crash -run '%s'",
		dir, replayEnv, dir, seedEnv, c.seed, imagesEnv, number(c.t, imagesEnv, 600), c.t.Name())
}

// TestCrashReplay opens one kept image again, in this process, so that a debugger
// can watch.
func TestCrashReplay(t *testing.T) {
	dir := os.Getenv(replayEnv)
	if dir == "" {
		t.Skipf("set %s to a kept image", replayEnv)
	}
	b, err := os.ReadFile(filepath.Join(dir, "request.json"))
	if err != nil {
		t.Fatal(err)
	}
	var q checkRequest
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	// Looking changes the image; the kept one stays as it is.
	work := filepath.Join(t.TempDir(), "image")
	if err := os.CopyFS(work, os.DirFS(q.Dir)); err != nil {
		t.Fatal(err)
	}
	q.Dir = work
	if a := checkImage(q); a.Problem != "" {
		t.Error(a.Problem)
	}
}
