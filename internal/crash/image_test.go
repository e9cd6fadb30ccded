// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/statusstore/statusstore/internal/crash"
)

// content is what a directory holds, by name.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// drawAll draws many images of a log and returns the different ones.
func drawAll(t *testing.T, log *crash.Log, n int) (all []map[string]string) {
	t.Helper()
	dir := filepath.Join(fastDir(t), "image")
	for i := range n {
		for s := range log.Stages {
			if err := log.Image(&log.Stages[s], rand.New(rand.NewPCG(1, uint64(i)))).Write(dir); err != nil {
				t.Fatal(err)
			}
			all = append(all, content(t, dir))
		}
	}
	return all
}

// TestCrashImage_Draws: an image is made of old and new sectors, nothing else;
// both ends and mixtures come up, and the same numbers give the same image.
func TestCrashImage_Draws(t *testing.T) {
	dir := fastDir(t)
	path := filepath.Join(dir, "file")
	old, now := bytes.Repeat([]byte{'o'}, 6*4096), bytes.Repeat([]byte{'n'}, 6*4096)
	copy(now[2*4096:], old[:4096]) // one page does not change
	write(t, path, old)
	r, err := crash.NewRecorder(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, now)
	r.Rest()
	log, err := r.Log()
	if err != nil {
		t.Fatal(err)
	}
	first, again := drawAll(t, log, 300), drawAll(t, log, 300)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error("the same numbers give other images")
	}
	var allOld, allNew, mixed, torn int
	for _, image := range first {
		b := []byte(image["file"])
		if len(b) != len(old) {
			t.Fatalf("%d bytes", len(b))
		}
		inside, n := 0, bytes.Count(b, []byte("n"))
		for at := 0; at < len(b); at += 512 {
			if c := bytes.Count(b[at:at+512], []byte("n")); c != 0 && c != 512 {
				inside++
			}
		}
		switch {
		case inside > 1:
			t.Errorf("%d sectors are torn inside", inside)
		case inside == 1:
			torn++
		case n == 0:
			allOld++
		case n == bytes.Count(now, []byte("n")):
			allNew++
		default:
			mixed++
		}
	}
	if allOld < 20 || allNew < 20 || mixed < 100 || torn < 10 {
		t.Errorf("%d old, %d new, %d mixed, %d torn", allOld, allNew, mixed, torn)
	}
}

// TestCrashChild: a child that dies is reported with what it said, one that
// hangs is ended, and the next one works.
func TestCrashChild(t *testing.T) {
	tests := []struct {
		how, want string
		timeout   time.Duration
	}{{"exit", "exit status 3", 10 * time.Second}, {"hang", "no answer", 200 * time.Millisecond}}
	for _, tt := range tests {
		c, err := crash.StartChild(childEnv + "=echo")
		if err != nil {
			t.Fatal(err)
		}
		var got echo
		if err := c.Ask(echo{"hello"}, &got, 10*time.Second); err != nil || got.Text != "hello" {
			t.Fatalf("%v %v", got, err)
		}
		err = c.Ask(echo{tt.how}, &got, tt.timeout)
		if died, ok := errors.AsType[*crash.DiedError](err); !ok || !bytes.Contains([]byte(died.Error()), []byte(tt.want)) {
			t.Errorf("%s: %v", tt.how, err)
		}
	}
}
