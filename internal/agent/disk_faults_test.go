// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// diskCase is one way in which a disk fails.
type diskCase struct {
	name  string
	rules []diskRule
	// code answers a PUT meanwhile, cause is in its message, in health and in the
	// log.
	code  int
	cause string
	// dies: the agent can't go on in this process, says so and exits non-zero.
	dies bool
	// alone: without an API server, so that nothing but the agent itself would
	// notice that the disk works again.
	alone bool
}

const eio, erofs, enospc, edquot = "input/output error", "read-only file system", "no space left on device", "disk quota exceeded"

var diskCases = []diskCase{
	{name: "ENOSPC on write", code: 507, cause: enospc, rules: []diskRule{{Calls: writes, Errno: syscall.ENOSPC}}},
	{name: "ENOSPC on write, half written", code: 507, cause: enospc,
		rules: []diskRule{{Calls: writes, Errno: crash.Short, Once: true}, {Calls: writes, Errno: syscall.ENOSPC}}},
	{name: "EDQUOT on write", code: 507, cause: edquot, rules: []diskRule{{Calls: writes, Errno: syscall.EDQUOT}}},
	{name: "EIO on write", code: 503, cause: eio, rules: []diskRule{{Calls: writes, Errno: syscall.EIO}}},
	{name: "EIO on write, no API server", code: 503, cause: eio, alone: true, rules: []diskRule{{Calls: writes, Errno: syscall.EIO}}},
	{name: "EIO on each sync", code: 503, cause: eio, rules: []diskRule{{Calls: syncs, Errno: syscall.EIO}}},
	{name: "EIO on one sync of data", code: 503, cause: eio, rules: []diskRule{{Calls: syncs, Errno: syscall.EIO, Once: true}}},
	{name: "EIO on one sync of a meta page", code: 200, cause: eio, rules: []diskRule{{Calls: syncs, Errno: syscall.EIO, From: 2, Once: true}}},
	{name: "EIO on each sync from a meta page on", code: 503, cause: eio, dies: true, rules: []diskRule{{Calls: syncs, Errno: syscall.EIO, From: 2}}},
	{name: "EROFS on each change", code: 503, cause: erofs, rules: []diskRule{{Calls: changes, Errno: syscall.EROFS}}},
	{name: "short writes", code: 200, rules: []diskRule{{Calls: writes, Errno: crash.Short}}},
	{name: "syncs of 2 s", code: 200, rules: []diskRule{{Calls: syncs, Delay: 2 * time.Second}}},
}

// refuses: the fault is seen by those who write.
func (c diskCase) refuses() bool { return c.code != http.StatusOK }

// diskTable is what each fault gave, printed at the end.
type diskTable struct {
	mu    sync.Mutex
	lines []string
}

func (d *diskTable) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// G10 through the agent, fault by fault: what a caller hears, what health, the log
// and status say, that reads and syncing go on, and that afterwards, in the same
// process where that is possible, all that was accepted is there and nothing else.
func TestG10_DiskFaults(t *testing.T) {
	t.Parallel()
	table := &diskTable{}
	t.Run("cases", func(t *testing.T) {
		for _, c := range diskCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.test(t, table)
			})
		}
	})
	t.Logf("what each fault gave:\n%-38s %-4s %-8s %-8s %-5s %-9s %s\n%s", "fault", "PUT", "/readyz", "/healthz", "/livez", "degraded", "afterwards",
		strings.Join(table.lines, "\n"))
}

func (c diskCase) test(t *testing.T, table *diskTable) {
	s := newSick(t, c.alone)
	before := s.p.shown(newPod(0))
	s.disk.fail(c.rules...)
	hits := s.disk.hits()
	code := s.put(0)
	if s.disk.hits() == hits {
		t.Fatal("no call met the fault")
	}
	if code != c.code {
		t.Errorf("PUT: %d, want %d", code, c.code)
	}
	if c.dies {
		s.died(c.cause)
		table.add("%-38s %-4d %-8s %-8s %-5s %-9s %s", c.name, code, "-", "-", "-", "-", "exit code 1, says so; a new process has all that was accepted")
	} else {
		s.during(c, before)
		ready, health, live, degraded := s.health("/readyz"), s.health("/healthz"), s.health("/livez"), s.p.status().Degraded
		s.disk.heal()
		s.recovered()
		table.add("%-38s %-4d %-8d %-8d %-5d %-9v %s", c.name, code, ready, health, live, degraded, "goes on in the same process")
	}
	s.restarted()
}

// sick is an agent whose disk is about to fail.
type sick struct {
	t      *testing.T
	config childConfig
	disk   *disk
	p      *process
	api    *fakeapi.Server
	sent   map[string]int // newest number sent for a pod
	// accepted is the newest number answered with 200, refused are all others.
	accepted map[string]string
	refused  map[string]bool
}

const sickPods = 3

func newSick(t *testing.T, alone bool) *sick {
	t.Helper()
	s := &sick{t: t, sent: map[string]int{}, accepted: map[string]string{}, refused: map[string]bool{},
		config: childConfig{Dir: shortDir(t), PassInterval: 50 * time.Millisecond}}
	if !alone {
		var live []*v1.Pod
		for i := range sickPods {
			live = append(live, newPod(i))
		}
		s.api, s.config.Kubeconfig = newAPI(t, live...)
	}
	s.disk = newDisk(t, s.config.Dir)
	s.p = launch(t, s.config)
	for i := range sickPods {
		if code := s.put(i); code != http.StatusOK {
			t.Fatalf("PUT on a healthy disk: %d", code)
		}
	}
	if alone {
		return s
	}
	s.p.acked(newPod(0))
	// The acks are on disk too: nothing writes until the test does.
	eventually(t, 10*time.Second, func() bool { return len(acksOnDisk(s.p)) == sickPods })
	return s
}

// put sets the next status of a pod and checks the form of the answer.
func (s *sick) put(i int) int {
	s.t.Helper()
	pod := newPod(i)
	s.sent[pod.Name]++
	pod.Status.Message = fmt.Sprintf("%s %d", pod.Name, s.sent[pod.Name])
	code, header, body, err := s.p.exchange(http.MethodPut, httpapi.PodStatusPath(pod.Namespace, pod.Name), pod)
	if err != nil {
		s.t.Fatalf("PUT: %v", err)
	}
	if code == http.StatusOK {
		s.accepted[pod.Name] = pod.Status.Message
		return code
	}
	s.refused[pod.Status.Message] = true
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" || int(status.Code) != code || status.Message == "" {
		s.t.Errorf("PUT: %d with %s", code, body)
	}
	if header.Get("Retry-After") == "" {
		s.t.Errorf("PUT: %d without Retry-After", code)
	}
	return code
}

func (s *sick) health(path string) int {
	s.t.Helper()
	code, _, _, err := s.p.exchange(http.MethodGet, path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return code
}

// during looks around while the disk fails.
func (s *sick) during(c diskCase, before acceptance) {
	s.t.Helper()
	if c.refuses() {
		if got := s.p.shown(newPod(0)); got != before {
			s.t.Errorf("%+v is shown, it was %+v before the refused PUT", got, before)
		}
	}
	if c.refuses() && !c.rules[0].Once {
		for _, path := range []string{"/readyz", "/healthz"} {
			code, _, body, err := s.p.exchange(http.MethodGet, path+"?verbose", nil)
			if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(string(body), "[-]disk failed") || !strings.Contains(string(body), c.cause) {
				s.t.Errorf("%s: %d %v %s", path, code, err, body)
			}
		}
		if st := s.p.status(); !st.Degraded || !strings.Contains(st.DegradedReason, c.cause) {
			s.t.Errorf("status: degraded %v, %q", st.Degraded, st.DegradedReason)
		}
	} else if !c.refuses() {
		if code := s.health("/readyz"); code != http.StatusOK {
			s.t.Errorf("/readyz: %d", code)
		}
	}
	if code := s.health("/livez"); code != http.StatusOK {
		s.t.Errorf("/livez: %d, though no restart is needed", code)
	}
	if c.cause != "" {
		s.says(c.cause)
	}
	s.reads()
	s.syncs()
}

// says wants a line about the journal in the log that names the cause.
func (s *sick) says(cause string) {
	s.t.Helper()
	for line := range strings.Lines(s.p.log.String()) {
		if strings.Contains(line, "level=ERROR") && strings.Contains(line, "journal commit fails") && strings.Contains(line, cause) &&
			strings.Contains(line, filepath.Join(s.config.Dir, journal.FileName)) {
			return
		}
	}
	s.t.Errorf("no line in the log says that the journal cannot be written: %s", cause)
}

// reads asks for everything that is there to read.
func (s *sick) reads() {
	s.t.Helper()
	for i := range sickPods {
		if got := s.p.shown(newPod(i)); got.message != s.accepted[newPod(i).Name] {
			s.t.Errorf("%s: %q is shown, %q was accepted", got.uid, got.message, s.accepted[newPod(i).Name])
		}
	}
	var list v1.PodList
	s.p.call(http.MethodGet, "/api/v1/pods", nil, &list)
	var records httpapi.PodRecordList
	s.p.call(http.MethodGet, httpapi.PathPods, nil, &records)
	if len(list.Items) != sickPods || len(records.Pods) != sickPods {
		s.t.Errorf("%d pods and %d records are listed", len(list.Items), len(records.Pods))
	}
}

// syncs changes a pod on the server: the agent repairs that, whatever its disk does.
func (s *sick) syncs() {
	s.t.Helper()
	if s.api == nil {
		return
	}
	pod := newPod(1)
	if err := s.api.Mutate(pod.Namespace, pod.Name, func(p *v1.Pod) { p.Status.Message = "by somebody else" }); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, 10*time.Second, func() bool {
		live, _ := s.api.Pod(pod.Namespace, pod.Name)
		return live.Status.Message == s.accepted[pod.Name]
	})
}

// recovered: the disk works again, and so does the agent, before anybody writes.
func (s *sick) recovered() {
	s.t.Helper()
	eventually(s.t, 10*time.Second, func() bool { return s.health("/readyz") == http.StatusOK })
	if st := s.p.status(); st.Degraded {
		s.t.Errorf("still degraded: %s", st.DegradedReason)
	}
	before := s.p.shown(newPod(0))
	if code := s.put(0); code != http.StatusOK {
		s.t.Fatalf("PUT after the fault: %d", code)
	}
	if got := s.p.shown(newPod(0)); got.version != before.version+1 {
		s.t.Errorf("version %d after %d: a refused write has used one up", got.version, before.version)
	}
	s.reads()
}

// died: the agent has ended by itself, with a reason.
func (s *sick) died(cause string) {
	s.t.Helper()
	select {
	case <-s.p.ended:
	case <-time.After(slack * 15 * time.Second):
		s.t.Fatal("the agent goes on though it can't know what is on its disk")
	}
	if code := s.p.cmd.ProcessState.ExitCode(); code != 1 {
		s.t.Errorf("exit code %d, want 1", code)
	}
	if log := s.p.log.String(); !strings.Contains(log, ErrJournalFailed.Error()) || !strings.Contains(log, cause) {
		s.t.Error("the log does not say why it ended")
	}
}

// restarted compares what a new process finds with what was answered.
func (s *sick) restarted() {
	s.t.Helper()
	if s.p.cmd.ProcessState == nil {
		s.p.kill()
	}
	s.disk.heal()
	s.verified()
	quiet := s.p
	s.p = launch(s.t, s.config)
	quiet.quiet = true
	for i := range sickPods {
		name := newPod(i).Name
		got := s.p.shown(newPod(i))
		// The answer of an agent that gave up was "I don't know".
		if got.message != s.accepted[name] && !(quiet.cmd.ProcessState.ExitCode() == 1 && s.refused[got.message]) {
			s.t.Errorf("%s: after the restart %q, accepted was %q", name, got.message, s.accepted[name])
		}
	}
	if code := s.put(0); code != http.StatusOK {
		s.t.Errorf("PUT after the restart: %d", code)
	}
	if s.api != nil {
		s.p.acked(newPod(0))
	}
	s.p.kill()
}

// verified reads the file itself: it is whole, and no refused status is in it.
func (s *sick) verified() {
	s.t.Helper()
	r, err := journal.OpenReadOnly(filepath.Join(s.config.Dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Verify(s.t.Context(), func(p journal.Problem) { s.t.Errorf("verify: %v", p) }); err != nil {
		s.t.Fatal(err)
	}
	stored := map[string]bool{}
	for e, err := range r.Events(1, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Kind != journal.KindSet {
			continue
		}
		status, err := podstatus.Decode(e.Status)
		if err != nil {
			s.t.Fatal(err)
		}
		stored[status.Message] = true
		if s.refused[status.Message] && s.p.cmd.ProcessState.ExitCode() != 1 {
			s.t.Errorf("%q was refused and is stored", status.Message)
		}
	}
	for _, message := range s.accepted {
		if !stored[message] {
			s.t.Errorf("%q was accepted and is not stored", message)
		}
	}
}
