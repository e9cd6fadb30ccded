// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// realistic is a status with two containers and five conditions.
func realistic(i int) *v1.PodStatus {
	at := metav1.NewTime(time.Unix(1767225600+int64(i), 0))
	ip := fmt.Sprintf("10.1.%d.%d", i%500/250, i%250)
	s := &v1.PodStatus{Phase: v1.PodRunning, HostIP: "10.0.0.1", PodIP: ip, PodIPs: []v1.PodIP{{IP: ip}}, StartTime: &at, QOSClass: v1.PodQOSBurstable}
	for _, c := range []v1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		status := v1.ConditionTrue
		if i%7 == 0 && strings.HasSuffix(string(c), "Ready") {
			status = v1.ConditionFalse
		}
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: c, Status: status, LastTransitionTime: at})
	}
	for k, n := range []string{"app", "side"} {
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{Name: n, Ready: i%7 != 0, RestartCount: int32(i / 5000), Started: new(true),
			Image: "registry.example.com/team/" + n + ":1.2.3", ImageID: "sha256:" + marker(i%500), ContainerID: "containerd://" + marker(i%500*2+k),
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at}}})
	}
	return s
}

// large writes a journal of n events of 500 pods.
func large(t testing.TB, path string, n int) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Node: "node-1", Retention: journal.Retention{MaxEvents: 1 << 30, MaxBytes: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var statuses [][]byte
	for i := range 7000 { // enough that no two neighbours are alike
		raw, err := podstatus.Encode(realistic(i))
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, raw)
	}
	var batch []journal.Event
	for i := 2; i <= n; i++ {
		batch = append(batch, journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, Namespace: "default", Name: fmt.Sprintf("web-%d", i%500),
			UID: types.UID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i%500)), ContentType: journal.ContentTypeProtobuf, Status: statuses[i%len(statuses)]})
		if len(batch) == 2000 || i == n {
			if _, err := j.Append(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
}

// rawWalk moves the engine's own cursor over all events and looks at nothing.
func rawWalk(t testing.TB, path string) (took time.Duration) {
	t.Helper()
	began := time.Now()
	db, err := bolt.Open(path, 0, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	err = db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte("events")).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			n += len(v)
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return time.Since(began)
}

// processorTime is that of this process. Under load it tells more than the clock:
// a command has two cores' threads to wait for, a walk one.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAgainstCursor compares whole commands with a raw walk of the engine's
// cursor over the same file, one after the other in the same run. Either opens the
// file anew each time.
func BenchmarkAgainstCursor(b *testing.B) {
	path := os.Getenv("JOURNAL_DUMP_BENCH") // where one is, or is to be kept for the next run
	if path == "" {
		path = filepath.Join(b.TempDir(), journal.FileName)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		large(b, path, 1_000_000)
	}
	for _, bench := range []struct {
		name string
		args []string
	}{
		{"stats", []string{"stats", path}},
		{"events-of-a-pod", []string{"--pod", "web-7", path}},
		{"events-of-a-kind", []string{"--kind", "opened", path}},
		{"events-since", []string{"--since", "999000", path}},
		{"why", []string{"why", path, "web-7"}},
		{"export", []string{"export", path}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			best, raw := time.Hour, time.Hour
			work, rawWork := time.Hour, time.Hour
			for b.Loop() {
				before := processorTime(b)
				raw = min(raw, rawWalk(b, path))
				rawWork = min(rawWork, processorTime(b)-before)
				before = processorTime(b)
				began := time.Now()
				if code := Main(bench.args, nil, io.Discard, io.Discard); code != exitOK {
					b.Fatalf("exit code %d", code)
				}
				best = min(best, time.Since(began))
				work = min(work, processorTime(b)-before)
			}
			b.ReportMetric(float64(best)/float64(raw), "cursor-walks")
			b.ReportMetric(float64(work)/float64(rawWork), "cursor-walks-of-processor-time")
			b.ReportMetric(float64(best.Milliseconds()), "best-ms")
			b.ReportMetric(float64(raw.Milliseconds()), "walk-ms")
		})
	}
}

// TestMemory: memory does not grow with the file. The bound is far above what is
// needed, and far below what the file has.
func TestMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector multiplies the memory that is needed")
	}
	path := filepath.Join(t.TempDir(), journal.FileName)
	large(t, path, 100_000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"stats", path}, {"--pod", "web-7", path}, {"export", path}, {"export", "--format", "otlp", path}, {"timeline", path}} {
		status := filepath.Join(t.TempDir(), "status")
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), childVariable+"="+status)
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		text, err := os.ReadFile(status)
		if err != nil {
			t.Skip("no /proc/self/status here")
		}
		m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
		peak, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		peak <<= 10
		t.Logf("%q: peak memory %d MB, the file has %d MB", args[:len(args)-1], peak>>20, info.Size()>>20)
		if limit := int64(100 << 20); peak > limit {
			t.Errorf("%q: peak memory %d bytes, want at most %d", args[:len(args)-1], peak, limit)
		}
	}
}
