// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/dump"
	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

// once is a pod that does not restart, with a container.
func once(i int, edits ...func(*v1.Pod)) *v1.Pod {
	return newPod(i, append([]func(*v1.Pod){withContainer, func(p *v1.Pod) {
		p.Spec.RestartPolicy = v1.RestartPolicyNever
	}}, edits...)...)
}

// exited is Failed, with exit code 1.
func exited(p *v1.Pod) {
	p.Status.Phase = v1.PodFailed
	p.Status.ContainerStatuses[0].Ready = false
	p.Status.ContainerStatuses[0].Started = new(false)
	p.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
}

func exitCode(s *v1.PodStatus) int32 {
	if len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Terminated == nil {
		return -1
	}
	return s.ContainerStatuses[0].State.Terminated.ExitCode
}

// patchedPhases are the phases in the PATCHes that arrived, "" where there is none.
func patchedPhases(t *testing.T, api *fakeapi.Server) []string {
	t.Helper()
	var phases []string
	for _, request := range api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}) {
		var body struct {
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		if err := json.Unmarshal(request.Body, &body); err != nil {
			t.Fatalf("PATCH %s: %v: %q", request.Path, err, request.Body)
		}
		phases = append(phases, body.Status.Phase)
	}
	return phases
}

// acked waits until the server has all of a pod's versions.
func (p *process) acked(pod *v1.Pod) journal.Version {
	p.t.Helper()
	eventually(p.t, 10*time.Second, func() bool { return p.status().Pending == 0 })
	return p.shown(pod).version
}

// C17: the final status is not lost between a crash and an outage of the API.
func TestC17_FinalStatusAfterCrashInOutage(t *testing.T) {
	t.Parallel()
	api, kubeconfig := newAPI(t, once(0))
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: 50 * time.Millisecond}
	p := launch(t, c)
	p.set(once(0, message("runs")))
	p.acked(once(0))

	api.NetworkDown()
	api.ResetRequests()
	p.set(once(0, exited)) // 200, or the test ends
	p.kill()
	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	p = launch(t, c)
	if got := p.get(once(0)); got.Status.Phase != v1.PodFailed || exitCode(&got.Status) != 1 {
		t.Errorf("after the restart: got %s, exit code %d", got.Status.Phase, exitCode(&got.Status))
	}
	eventually(t, 5*time.Second, func() bool {
		pod, _ := api.Pod("default", "web-0")
		return pod.Status.Phase == v1.PodFailed && exitCode(&pod.Status) == 1
	})
	p.acked(once(0))
	if got := patchedPhases(t, api); !slices.Equal(got, []string{"Failed"}) {
		t.Errorf("phases in PATCHes: %q, want Failed, once", got)
	}
	// Neither a foreign change, which makes the agent compare again, nor a new
	// message brings Running back.
	if err := api.Mutate("default", "web-0", func(pod *v1.Pod) { pod.Status.Message = "by somebody else" }); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, func() bool {
		pod, _ := api.Pod("default", "web-0")
		return pod.Status.Message == ""
	})
	p.set(once(0, exited, message("more detail")))
	p.acked(once(0))
	if got := patchedPhases(t, api); slices.Contains(got, "Running") || len(got) != 3 {
		t.Errorf("phases in PATCHes: %q, want 3 and never Running", got)
	}
	p.kill()
}

// C28: an old copy of the journal is put back. The server, which is ahead, keeps
// its final phase, and what is new reaches it.
func TestC28_OldCopyOfTheJournal(t *testing.T) {
	t.Parallel()
	api, kubeconfig := newAPI(t, once(0))
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: 50 * time.Millisecond}
	path := filepath.Join(c.Dir, journal.FileName)
	p := launch(t, c)
	p.set(once(0, message("1")))
	p.acked(once(0))
	api.NetworkDown()
	for i := 2; i <= 5; i++ {
		p.set(once(0, message(strconv.Itoa(i))))
	}
	if got := p.shown(once(0)); got.version != 5 || p.status().Pending != 1 {
		t.Fatalf("before the copy: %+v, %d pending, want version 5, not acked", got, p.status().Pending)
	}
	p.kill()
	old := read(t, path)

	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	p = launch(t, c)
	for i := 6; i <= 8; i++ {
		p.set(once(0, message(strconv.Itoa(i))))
	}
	p.set(once(0, exited, message("9")))
	if version := p.acked(once(0)); version != 9 {
		t.Fatalf("version %d, want 9", version)
	}
	p.kill()
	if pod, _ := api.Pod("default", "web-0"); pod.Status.Phase != v1.PodFailed || pod.Status.Message != "9" {
		t.Fatalf("the server has %s, %q", pod.Status.Phase, pod.Status.Message)
	}

	write(t, path, old)
	api.ResetRequests()
	p = launch(t, c)
	if got := p.shown(once(0)); got.version != 5 || got.message != "5" {
		t.Fatalf("after the copy was put back: %+v", got)
	}
	eventually(t, 10*time.Second, func() bool {
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "server is ahead") && strings.Contains(line, "uid=uid-0") && strings.Contains(line, "phase") {
				return true
			}
		}
		return false
	})
	// What the old status says of the container does not bring it back either.
	p.acked(once(0))
	if pod, _ := api.Pod("default", "web-0"); exitCode(&pod.Status) != 1 || pod.Status.ContainerStatuses[0].State.Running != nil {
		t.Errorf("the server has containers %+v", pod.Status.ContainerStatuses)
	}
	p.set(once(0, exited, message("after the restore")))
	if version := p.acked(once(0)); version <= 5 {
		t.Errorf("version %d after 5", version)
	}
	if pod, _ := api.Pod("default", "web-0"); pod.Status.Phase != v1.PodFailed || pod.Status.Message != "after the restore" || exitCode(&pod.Status) != 1 {
		t.Errorf("the server has %s, %q, exit code %d", pod.Status.Phase, pod.Status.Message, exitCode(&pod.Status))
	}
	if got := patchedPhases(t, api); slices.Contains(got, "Running") {
		t.Errorf("phases in PATCHes: %q, want never Running", got)
	}
	final := false
	for _, change := range api.StatusHistory("uid-0") {
		if final && change.Status.Phase != v1.PodFailed {
			t.Errorf("the server went from Failed to %s", change.Status.Phase)
		}
		final = final || change.Status.Phase == v1.PodFailed
	}
	p.kill()
}

// C52: retention goes on while the server is away, and what it spares is complete.
func TestC52_RetentionDuringAnOutage(t *testing.T) {
	t.Parallel()
	const pods, early, late, limit = 20, 10, 50, 100
	var live []*v1.Pod
	for i := range pods {
		live = append(live, newPod(i))
	}
	api, kubeconfig := newAPI(t, live...)
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: 50 * time.Millisecond, MaxEvents: limit}
	p := launch(t, c)
	for i := range early {
		p.set(newPod(i, message("early")))
	}
	eventually(t, 10*time.Second, func() bool { return p.status().Pending == 0 })
	position := p.status().HeadSequence
	api.NetworkDown()
	var group sync.WaitGroup
	for w := range killWriters {
		group.Go(func() {
			for n := range late {
				for i := w; i < pods; i += killWriters {
					pod := newPod(i, message(fmt.Sprintf("%d of %d", n+1, late)))
					code, _, body, err := p.exchange("PUT", "/api/v1/namespaces/default/pods/"+pod.Name+"/status", pod)
					if err != nil || code != 200 {
						t.Errorf("set %s: %d %v: %s", pod.Name, code, err, body)
						return
					}
				}
			}
		})
	}
	group.Wait()
	s := p.status()
	if s.Pending != pods || s.HeadSequence < position+pods*late {
		t.Fatalf("%d pending, head %d after %d", s.Pending, s.HeadSequence, position)
	}
	p.kill()

	r, err := journal.OpenReadOnly(filepath.Join(c.Dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := r.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Events(1, journal.Sequence(position)) {
		// Openings have a limit of their own.
		if err != nil || e.Kind != journal.KindOpened {
			t.Fatalf("event %d of kind %v is still there (%v)", e.Sequence, e.Kind, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if stats.Events < pods || stats.Events > 2*limit || stats.Horizon <= position {
		t.Errorf("%d events from %d, trimmed up to %d: want at most %d, and all up to %d gone", stats.Events, stats.First, stats.Horizon, limit, position)
	}
	var out, errs bytes.Buffer
	if code := dump.Main([]string{"stats", "-o", "json", c.Dir}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("journal-dump: exit code %d: %s", code, &errs)
	}
	var shown journal.Stats
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil || shown.Horizon != stats.Horizon || shown.First != stats.First {
		t.Errorf("journal-dump shows %d, trimmed up to %d (%v); want %d and %d", shown.First, shown.Horizon, err, stats.First, stats.Horizon)
	}

	p = launch(t, c)
	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() bool { return p.status().Pending == 0 })
	want := fmt.Sprintf("%d of %d", late, late)
	for i := range pods {
		pod, _ := api.Pod("default", newPod(i).Name)
		if stored := p.shown(newPod(i)); pod.Status.Message != want || stored.message != want {
			t.Errorf("%s: the server has %q, the agent %q, want %q", pod.Name, pod.Status.Message, stored.message, want)
		}
	}
	p.kill()
}
