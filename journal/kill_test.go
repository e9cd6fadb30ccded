// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const childEnv = "STATUSSTORE_TEST_JOURNAL"

const killWriters = 8

// appendUntilKilled is the child: writers append, remove and ack without end,
// and say on standard output what was accepted. Each line is one write, so the
// parent never sees half of one but the last.
func appendUntilKilled(path string) int {
	j, err := Open(path, Options{Retention: Retention{MaxEvents: 300}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range killWriters {
		wg.Go(func() {
			uid := types.UID(fmt.Sprint("pod-", w))
			for i := 0; ; i++ {
				e := set(uid, strings.Repeat(fmt.Sprintf("%d/%d ", w, i), 40))
				if i%17 == 16 {
					e = removed(uid)
				}
				got, err := j.Append(context.Background(), e)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				if i%3 == 0 {
					j.PutAck(Ack{UID: uid, LiveUID: uid, Version: got[0].Version})
				}
				mu.Lock()
				fmt.Printf("%s %d %d\n", uid, got[0].Version, got[0].Sequence)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return 0
}

// TestG1_KillLoop kills a writing process at random moments, on one file. Never
// is an accepted event missing, a version repeated, or the file in need of help.
func TestG1_KillLoop(t *testing.T) {
	rounds := 200
	if testing.Short() || raceDetector() {
		rounds = 20
	}
	path := filepath.Join(t.TempDir(), FileName)
	accepted := map[types.UID]Version{}
	top := Sequence(0)
	total := 0
	for round := range rounds {
		lines := runAndKill(t, path, time.Duration(5+rand.IntN(60))*time.Millisecond)
		total += len(lines)
		for _, l := range lines {
			if l.version <= accepted[l.uid] {
				t.Fatalf("round %d: %s got version %d again after %d", round, l.uid, l.version, accepted[l.uid])
			}
			accepted[l.uid] = l.version
			top = max(top, l.sequence)
		}
		checkAfterKill(t, path, round, accepted, top)
	}
	t.Logf("%d kills, %d accepted events", rounds, total)
	if total < rounds {
		t.Errorf("only %d events were accepted: the test did not test much", total)
	}
}

type acceptedLine struct {
	uid      types.UID
	version  Version
	sequence Sequence
}

func childCommand(path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

func runAndKill(t *testing.T, path string, after time.Duration) (lines []acceptedLine) {
	t.Helper()
	cmd := childCommand(path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	for s := bufio.NewScanner(out); s.Scan(); {
		if len(lines) == 0 {
			// Counted from the first event, so that the kill lands among commits.
			timer.Reset(after)
		}
		var l acceptedLine
		if n, _ := fmt.Sscanf(s.Text(), "%s %d %d", &l.uid, &l.version, &l.sequence); n == 3 {
			lines = append(lines, l)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("child ended by itself: %v", err)
	}
	return lines
}

func checkAfterKill(t *testing.T, path string, round int, accepted map[types.UID]Version, top Sequence) {
	t.Helper()
	r, err := OpenReadOnly(path, ReadOptions{})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	defer r.Close()
	if _, err := r.Verify(t.Context(), func(p Problem) { t.Errorf("round %d: %v", round, p) }); err != nil {
		t.Fatal(err)
	}
	if r.Head() < top {
		t.Errorf("round %d: head %d is below the accepted sequence %d", round, r.Head(), top)
	}
	found := map[types.UID]Version{}
	for e, err := range r.Newest() {
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		found[e.UID] = e.Version
	}
	for uid, v := range accepted {
		if found[uid] < v {
			t.Errorf("round %d: %s was accepted at version %d, the journal has %d", round, uid, v, found[uid])
		}
		// What was committed but not heard of is given to nobody else.
		accepted[uid] = max(v, found[uid])
	}
}
