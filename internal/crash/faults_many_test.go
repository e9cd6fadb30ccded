// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

// outcome is one append as its caller saw it.
type outcome struct {
	status   string
	version  journal.Version
	sequence journal.Sequence
	err      error
}

// TestG10_FaultsAmongMany lets a call fail while many append and read. Each
// caller hears the truth about its own event, and nobody is told that the
// journal is closed.
func TestG10_FaultsAmongMany(t *testing.T) {
	if os.Getenv(childEnv) != "fault" {
		out, skipped := inChild(t, "fault")
		if skipped != "" {
			t.Skip(skipped)
		}
		t.Logf("%s", regexp.MustCompile(`(?m)^\d+ rounds: .*$`).Find(out))
		return
	}
	i := inject(t)
	rng := rand.New(rand.NewPCG(uint64(number(t, seedEnv, 1)), 0))
	kinds := []crash.Syscall{crash.Fdatasync, crash.Fdatasync, crash.Pwrite, crash.Fsync, crash.Fallocate}
	const rounds = 20
	accepted, refused := 0, 0
	for round := range rounds {
		f := fault{kinds[rng.IntN(len(kinds))], 1 + rng.IntN(12), []syscall.Errno{syscall.EIO, syscall.ENOSPC}[rng.IntN(2)], false}
		if f.call == crash.Fsync || f.call == crash.Fallocate {
			f.nth = 1 + rng.IntN(2)
		}
		yes, no := amongMany(t, i, f)
		accepted, refused = accepted+yes, refused+no
		if t.Failed() {
			t.Fatalf("round %d, %v", round, f)
		}
	}
	fmt.Printf("%d rounds: %d events accepted, %d refused\n", rounds, accepted, refused)
	if refused < rounds {
		t.Errorf("only %d events were refused", refused)
	}
}

const writers, appends = 8, 30

func amongMany(t *testing.T, i *injector, f fault) (accepted, refused int) {
	path := filepath.Join(fastDir(t), journal.FileName)
	o := journal.Options{Retention: journal.Retention{MaxEvents: 1 << 20}}
	j, err := journal.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	i.arm(f)
	var outcomes [writers][]outcome
	var wg, reading sync.WaitGroup
	stop := make(chan struct{})
	reading.Go(func() { read(t, j, stop) })
	for w := range writers {
		wg.Go(func() {
			e := journal.Event{Kind: journal.KindSet, UID: types.UID(fmt.Sprint("w", w)), Namespace: "default", Name: "pod"}
			for n := range appends {
				e.Status = fmt.Appendf(nil, "%d/%d %s", w, n, bytes.Repeat([]byte{byte(n), byte(w)}, 40*n))
				if n%10 == 5 {
					e.Status = make([]byte, 100_000+n) // grows the file now and then
					rand.NewChaCha8([32]byte{byte(n), byte(w)}).Read(e.Status)
				}
				got, err := j.Append(context.Background(), e)
				out := outcome{status: string(e.Status), err: err}
				if err == nil {
					out.version, out.sequence = got[0].Version, got[0].Sequence
				}
				outcomes[w] = append(outcomes[w], out)
			}
		})
	}
	wg.Wait()
	close(stop)
	reading.Wait()
	i.heal()
	if err := j.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return compareOutcomes(t, path, outcomes[:])
}

// read reads all the time.
func read(t *testing.T, j *journal.Journal, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		head, _ := j.Head()
		for _, err := range j.Events(1, head) {
			if err != nil && !errors.Is(err, journal.ErrDegraded) {
				t.Errorf("reading: %v", err)
				return
			}
		}
		if _, err := j.Stats(); err != nil && !errors.Is(err, journal.ErrDegraded) {
			t.Errorf("stats: %v", err)
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// compareOutcomes finds each accepted event in the file, and no refused one.
func compareOutcomes(t *testing.T, path string, outcomes [][]outcome) (accepted, refused int) {
	t.Helper()
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Verify(t.Context(), func(p journal.Problem) { t.Errorf("verify: %v", p) }); err != nil {
		t.Fatal(err)
	}
	found := map[journal.Sequence]journal.Event{}
	byStatus := map[string]bool{}
	for e, err := range r.Events(1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		found[e.Sequence] = e
		byStatus[string(e.Status)] = true
	}
	for w, list := range outcomes {
		last := journal.Version(0)
		for n, out := range list {
			switch e := found[out.sequence]; {
			case out.err != nil:
				refused++
				if byStatus[out.status] {
					t.Errorf("writer %d, event %d was refused and is there: %v", w, n, out.err)
				}
				if !errors.Is(out.err, journal.ErrDegraded) {
					t.Errorf("writer %d, event %d: %v", w, n, out.err)
				}
			case string(e.Status) != out.status || e.Version != out.version || out.version != last+1:
				t.Errorf("writer %d, event %d: accepted as version %d after %d at %d, there is version %d", w, n, out.version, last, out.sequence, e.Version)
			default:
				accepted++
				last = out.version
			}
		}
	}
	return accepted, refused
}
