// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

const (
	killsEnv   = "STATUSSTORE_KILLS"    // how many in all, 140 unless said otherwise
	killDirEnv = "STATUSSTORE_KILL_DIR" // for the child: where its journal is
	killAtEnv  = "STATUSSTORE_KILL_AT"  // for the child: the call before which it dies
	killCalls  = "calls until the end:" // the child says so when it was not killed
	killedWith = "signal: killed"       // how it ends otherwise
	noiseBytes = 2500                   // of a status that does not compress
	wholeCopy  = "whole.db"             // what is put under the journal's name again and again
)

// killed is one way to die: prepare once, then again and again a child works on
// the directory and dies before one of its system calls.
type killed struct {
	name    string
	prepare func(t *testing.T, dir string)
	// each is done by the parent before each child.
	each func(t *testing.T, dir string)
	// work is done by the child. Lines that it prints say what was accepted.
	work func(dir string) error
	// check is done by the parent beside the usual comparison.
	check func(t *testing.T, dir string)
}

func (k killed) open(dir string) (*journal.Journal, error) {
	return journal.Open(filepath.Join(dir, journal.FileName), journal.Options{Retention: journal.Retention{MaxEvents: 200}})
}

var printing sync.Mutex

// say prints events as accepted, in one write.
func say(events []journal.Event) {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "accepted %s %d\n", e.UID, e.Version)
	}
	printing.Lock()
	defer printing.Unlock()
	os.Stdout.WriteString(b.String()) //nolint:errcheck // the parent is there as long as we are
}

func appendAndSay(j *journal.Journal, events ...journal.Event) error {
	got, err := j.Append(context.Background(), events...)
	say(got)
	return err
}

var killings = []killed{
	{
		name: "creation",
		each: func(t *testing.T, dir string) { // a new place each time
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
				t.Fatal(err)
			}
		},
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			return errors.Join(appendAndSay(j, pod("a", journal.KindSet, 100)), j.Close())
		},
	},
	{
		name: "appends",
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			var wg sync.WaitGroup
			var failed [4]error
			for w := range failed {
				wg.Go(func() {
					for n := 0; n < 8 && failed[w] == nil; n++ {
						uid := types.UID(fmt.Sprint("w", w))
						failed[w] = appendAndSay(j, pod(uid, journal.KindSet, 40<<(2*(n%4))), pod(uid, journal.KindFinished, 100))
					}
				})
			}
			wg.Wait()
			return errors.Join(append(failed[:], j.Close())...)
		},
	},
	{
		name: "acks",
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			var batch []journal.Event
			for i := range 30 {
				batch = append(batch, pod(types.UID(fmt.Sprint("a", i)), journal.KindSet, 60))
			}
			got, err := j.Append(context.Background(), batch...)
			say(got)
			for round := 0; round < 6 && err == nil; round++ {
				for _, e := range got[round*5 : round*5+5] {
					j.PutAck(journal.Ack{UID: e.UID, LiveUID: e.UID, Version: e.Version})
				}
				j.ForgetAck(got[(round+10)%30].UID)
				err = j.Flush(context.Background())
			}
			return errors.Join(err, j.Close())
		},
		check: acksFit,
	},
	{
		name: "retention", // each append trims, and removes pods with what belongs to them
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			for round := 0; round < 6 && err == nil; round++ {
				var batch []journal.Event
				for i := range 120 {
					batch = append(batch, pod(types.UID(fmt.Sprint("r", (round+i)%7)), journal.KindSet, 300))
				}
				gone := types.UID(fmt.Sprint("r", round))
				j.PutAck(journal.Ack{UID: gone, LiveUID: gone, Version: 1})
				err = appendAndSay(j, append(batch, pod(gone, journal.KindRemoved, 0))...)
			}
			return errors.Join(err, j.Close())
		},
		check: func(t *testing.T, dir string) {
			if d, err := look(dir, journal.FileName); err != nil || strings.Count(d.text, "\n") > 1000 {
				t.Errorf("history is not trimmed: %v, %d lines", err, strings.Count(d.text, "\n"))
			}
		},
	},
	{
		name: "close",
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			if err := appendAndSay(j, pod("a", journal.KindSet, 900), pod("b", journal.KindSet, 900), pod("c", journal.KindSet, 900), pod("c", journal.KindRemoved, 0)); err != nil {
				return err
			}
			j.PutAck(journal.Ack{UID: "a", LiveUID: "a", Version: 1})
			return j.Close()
		},
	},
	{
		name: "snapshot",
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			var failed [4]error
			for w := range failed {
				wg.Go(func() {
					for failed[w] == nil {
						select {
						case <-stop:
							return
						default:
							failed[w] = appendAndSay(j, pod(types.UID(fmt.Sprint("w", w)), journal.KindSet, 300))
						}
					}
				})
			}
			err = j.Snapshot(context.Background(), filepath.Join(dir, copyName))
			if f, other := j.SnapshotFile(context.Background()); other == nil {
				f.Close()
			} else {
				err = errors.Join(err, other)
			}
			close(stop)
			wg.Wait()
			return errors.Join(append(failed[:], err, j.Close())...)
		},
		check: func(t *testing.T, dir string) {
			d, err := look(dir, copyName)
			if err != nil || len(d.problems) > 0 {
				t.Errorf("the snapshot is neither absent nor complete: %v %q", err, d.problems)
			}
			stale, err := filepath.Glob(filepath.Join(dir, "."+copyName+"*"))
			// Those are the user's to remove.
			for _, path := range append(stale, filepath.Join(dir, copyName)) {
				if e := os.Remove(path); !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
			if err != nil {
				t.Error(err)
			}
		},
	},
	{
		name: "compaction",
		prepare: func(t *testing.T, dir string) {
			j, err := journal.Open(filepath.Join(dir, journal.FileName), journal.Options{Retention: journal.Retention{MaxEvents: 1 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				var batch []journal.Event
				for i := range 500 {
					batch = append(batch, pod(types.UID(fmt.Sprint("p", i%10)), journal.KindSet, noiseBytes))
				}
				if _, err := j.Append(t.Context(), batch...); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, err = (killed{}).open(dir); err == nil { // trims
				err = j.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(filepath.Join(dir, journal.FileName))
			if err := errors.Join(err, os.WriteFile(filepath.Join(filepath.Dir(dir), wholeCopy), whole, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		each: func(t *testing.T, dir string) {
			whole, err := os.ReadFile(filepath.Join(filepath.Dir(dir), wholeCopy))
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, journal.FileName), whole, 0o600)); err != nil {
				t.Fatal(err)
			}
		},
		work: func(dir string) error {
			j, err := killed{}.open(dir)
			if err != nil {
				return err
			}
			return errors.Join(appendAndSay(j, pod("p1", journal.KindSet, 100)), j.Close())
		},
	},
}

// acksFit: no ack is above what is stored.
func acksFit(t *testing.T, dir string) {
	t.Helper()
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	acks, err := r.Acks()
	if err != nil {
		t.Fatal(err)
	}
	newest := versionsIn(t, dir)
	for uid, a := range acks {
		if a.Version == 0 || a.Version > newest[string(uid)] {
			t.Errorf("%s is acked at version %d, stored is %d", uid, a.Version, newest[string(uid)])
		}
	}
}

// TestG1_KillAtEachCall kills a process right before each of the system calls by
// which it creates, appends to, acks in, trims, closes, snapshots and compacts a
// journal, one after the other, again and again.
func TestG1_KillAtEachCall(t *testing.T) {
	if os.Getenv(childEnv) == "kill" {
		dieAtCall(t)
		return
	}
	each := (number(t, killsEnv, 140) + len(killings) - 1) / len(killings)
	if testing.Short() {
		each = 10
	}
	all := 0
	for _, k := range killings {
		dir := filepath.Join(fastDir(t), "data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if k.prepare != nil {
			k.prepare(t, dir)
		}
		base := versionsIn(t, dir)
		killed, accepted := 0, maps.Clone(base)
		total := k.once(t, dir, 0, accepted) // to the end
		rng := rand.New(rand.NewPCG(uint64(number(t, seedEnv, 1)), 0))
		for n := 0; killed < each && !t.Failed(); n++ {
			at := n%total + 1
			if each < total { // not all of them: any of them
				at = rng.IntN(total) + 1
			}
			if k.each != nil { // it starts from the same place each time
				accepted = maps.Clone(base)
			}
			if k.once(t, dir, at, accepted) == 0 {
				killed++
			}
		}
		all += killed
		t.Logf("%s: %d kills, each before one of %d calls", k.name, killed, total)
		if total < 5 {
			t.Errorf("%s: only %d calls were seen", k.name, total)
		}
	}
	t.Logf("%d kills in all; nothing accepted was lost, no version given twice, no file damaged", all)
}

// versionsIn tells what a journal holds before anything is killed.
func versionsIn(t *testing.T, dir string) map[string]journal.Version {
	t.Helper()
	versions := map[string]journal.Version{}
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if errors.Is(err, fs.ErrNotExist) {
		return versions
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for e, err := range r.Newest() {
		if err != nil {
			t.Fatal(err)
		}
		versions[string(e.UID)] = e.Version
	}
	return versions
}

// once runs one child. It returns 0 if the child was killed, otherwise how many
// calls it made.
func (k killed) once(t *testing.T, dir string, at int, accepted map[string]journal.Version) (calls int) {
	t.Helper()
	if k.each != nil {
		k.each(t, dir)
	}
	cmd := crash.Self([]string{childEnv + "=kill", killDirEnv + "=" + dir, killAtEnv + "=" + strconv.Itoa(at), "STATUSSTORE_KILL_NAME=" + k.name},
		"-test.run=^"+t.Name()+"$")
	out, err := cmd.CombinedOutput()
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		var uid string
		var version journal.Version
		if n, _ := fmt.Sscanf(s.Text(), "accepted %s %d", &uid, &version); n == 2 {
			if version <= accepted[uid] {
				t.Errorf("%s got version %d after %d", uid, version, accepted[uid])
			}
			accepted[uid] = version
		}
		if rest, ok := strings.CutPrefix(s.Text(), killCalls); ok {
			calls, _ = strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	switch exit := cmd.ProcessState; {
	case exit.ExitCode() == exitUnsupported:
		t.Skip(string(out))
	case calls == 0 && exit.String() != killedWith:
		t.Fatalf("%s, killed at %d: %v\n%s", k.name, at, err, out)
	}
	k.compare(t, dir, at, accepted)
	return calls
}

// compare opens what the child left as the next one would.
func (k killed) compare(t *testing.T, dir string, at int, accepted map[string]journal.Version) {
	t.Helper()
	d, err := look(dir, journal.FileName)
	if err != nil || len(d.problems) > 0 || d.suspect {
		t.Fatalf("%s, killed at %d: %v %q suspect %v", k.name, at, err, d.problems, d.suspect)
	}
	if d.text == absent && len(accepted) > 0 {
		t.Fatalf("%s, killed at %d: the journal is gone", k.name, at)
	}
	if k.check != nil {
		k.check(t, dir)
	}
	j, err := k.open(dir)
	if err != nil {
		t.Fatalf("%s, killed at %d: %v", k.name, at, err)
	}
	defer j.Close()
	found := map[string]journal.Version{}
	for e, err := range j.Newest() {
		if err != nil {
			t.Fatal(err)
		}
		found[string(e.UID)] = e.Version
	}
	for uid, version := range accepted {
		if found[uid] < version {
			t.Errorf("%s, killed at %d: %s was accepted at version %d, there is %d", k.name, at, uid, version, found[uid])
		}
	}
	if err := leftovers(dir); err != nil {
		t.Errorf("%s, killed at %d: %v", k.name, at, err)
	}
	if _, err := os.Stat(filepath.Join(dir, journal.FileName+".initialised")); errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s, killed at %d: no initialised mark", k.name, at)
	}
}

// dieAtCall is the child.
func dieAtCall(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv(killAtEnv))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	err = crash.Intercept(func(crash.Call) syscall.Errno {
		if calls++; calls == at {
			return crash.KillSelf()
		}
		return 0
	}, crash.Fsync, crash.Fdatasync, crash.Pwrite, crash.Fallocate, crash.Ftruncate, crash.Link, crash.Rename, crash.Unlink)
	if err != nil {
		unsupported(err)
	}
	i := slices.IndexFunc(killings, func(k killed) bool { return k.name == os.Getenv("STATUSSTORE_KILL_NAME") })
	if err := killings[i].work(os.Getenv(killDirEnv)); err != nil {
		t.Fatal(err)
	}
	fmt.Println(killCalls, calls)
}
