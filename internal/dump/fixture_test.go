// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// outcome is what one run of the program left.
type outcome struct {
	code     int
	out, err string
}

func (o outcome) lines() []string {
	if o.out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(o.out, "\n"), "\n")
}

// run runs the program as main does.
func run(args ...string) outcome { return runWith("", args...) }

func runWith(stdin string, args ...string) outcome {
	var out, errs bytes.Buffer
	code := Main(args, strings.NewReader(stdin), &out, &errs)
	return outcome{code, out.String(), errs.String()}
}

// wantRun fails unless the run ended with that code and said all of these on
// standard error.
func wantRun(t *testing.T, got outcome, code int, stderr ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("exit code: got %d, want %d\nstdout: %.500s\nstderr: %s", got.code, code, got.out, got.err)
	}
	for _, want := range stderr {
		if !strings.Contains(got.err, want) {
			t.Errorf("stderr: got %q, want it to contain %q", got.err, want)
		}
	}
	if code == exitOK && len(stderr) == 0 && got.err != "" {
		t.Errorf("stderr: got %q, want none", got.err)
	}
	if strings.Contains(got.out+got.err, "goroutine ") {
		t.Errorf("stack trace in the output: %s%s", got.out, got.err)
	}
}

// events parses NDJSON: every line must be an event.
func (o outcome) events(t *testing.T) []Event {
	t.Helper()
	var all []Event
	for _, line := range o.lines() {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %.200q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

func sequences(events []Event) []journal.Sequence {
	var out []journal.Sequence
	for _, e := range events {
		out = append(out, e.Sequence)
	}
	return out
}

// make builds a closed journal in a directory of its own.
func build(t testing.TB, fill func(w *writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), journal.FileName)
	w := openWriter(t, path)
	if fill != nil {
		fill(w)
	}
	w.close()
	return path
}

// writer appends to a journal that is being built.
type writer struct {
	t testing.TB
	*journal.Journal
}

func openWriter(t testing.TB, path string) *writer {
	t.Helper()
	j, err := journal.Open(path, journal.Options{Node: "node-1", Software: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return &writer{t, j}
}

func (w *writer) close() {
	w.t.Helper()
	if err := w.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// add appends an event of pod default/NAME with UID uid-NAME.
func (w *writer) add(name string, kind journal.Kind, reason journal.Reason, status *v1.PodStatus) journal.Event {
	w.t.Helper()
	e := journal.Event{Kind: kind, Reason: reason, UID: types.UID("uid-" + name), Namespace: "default", Name: name}
	if status != nil {
		raw, err := podstatus.Encode(status)
		if err != nil {
			w.t.Fatal(err)
		}
		e.ContentType, e.Status = journal.ContentTypeProtobuf, raw
	}
	done, err := w.Append(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	return done[0]
}

func (w *writer) set(name string, status *v1.PodStatus) journal.Event {
	w.t.Helper()
	return w.add(name, journal.KindSet, journal.ReasonSet, status)
}

// refuse appends what the manager does when an update is refused.
func (w *writer) refuse(name string, policy v1.RestartPolicy, stored, asked *v1.PodStatus) {
	w.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}, Spec: v1.PodSpec{RestartPolicy: policy}}
	_, err := podstatus.Compute(podstatus.Update{Pod: pod, Status: asked, Previous: stored, Cached: true, Now: time.Now()})
	refused, ok := errors.AsType[*podstatus.TransitionError](err)
	if !ok {
		w.t.Fatalf("got %v, want a refusal", err)
	}
	if _, err := w.Append(w.t.Context(), journal.Event{Kind: journal.KindRejected, Reason: journal.ReasonSet, UID: pod.UID, Namespace: pod.Namespace, Name: name,
		Attributes: map[string]string{journal.AttrContainer: refused.Container, journal.AttrMessage: refused.Reason,
			journal.AttrFrom: refused.From, journal.AttrTo: refused.To}}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) ack(name string, version journal.Version) {
	uid := types.UID("uid-" + name)
	w.PutAck(journal.Ack{UID: uid, LiveUID: uid, Version: version, Time: time.Now().UTC()})
}

// many appends events up to and including sequence n, round robin over pods, in
// few commits. Each has a marker that finds it in the file.
func (w *writer) many(n, pods int) {
	w.t.Helper()
	var batch []journal.Event
	for i := 2; i <= n; i++ {
		s := running("app")
		s.Message = marker(i)
		raw, err := podstatus.Encode(s)
		if err != nil {
			w.t.Fatal(err)
		}
		batch = append(batch, journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, Namespace: "default",
			Name: fmt.Sprintf("web-%d", i%pods), UID: types.UID(fmt.Sprintf("uid-web-%d", i%pods)),
			ContentType: journal.ContentTypeProtobuf, Status: raw})
		if len(batch) == 250 || i == n {
			if _, err := w.Append(w.t.Context(), batch...); err != nil {
				w.t.Fatal(err)
			}
			batch = nil
		}
	}
}

// marker is text that occurs once in the file and that compression leaves alone.
func marker(i int) string {
	sum := sha256.Sum256([]byte(fmt.Sprint("event ", i)))
	return fmt.Sprintf("%x", sum)
}

// status builders.

func running(names ...string) *v1.PodStatus {
	s := &v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	for _, n := range names {
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{Name: n, Ready: true, ContainerID: "containerd://" + n,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}})
	}
	return s
}

func unreadyStatus(names ...string) *v1.PodStatus {
	s := running(names...)
	s.Conditions[0] = v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [app]"}
	s.ContainerStatuses[0].Ready = false
	return s
}

func restarted(n int32, exit int32, reason string) *v1.PodStatus {
	s := running("app")
	s.ContainerStatuses[0].RestartCount = n
	s.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{ExitCode: exit, Reason: reason}
	return s
}

func failed(exit int32) *v1.PodStatus {
	s := running("app")
	s.Phase, s.Reason = v1.PodFailed, "Evicted"
	s.Conditions[0].Status = v1.ConditionFalse
	s.ContainerStatuses[0].Ready = false
	s.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: exit, Reason: "Error"}}
	return s
}

// damage.

// change rewrites the file's bytes.
func change(t testing.TB, path string, edit func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, edit(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip flips one bit inside event n of a journal that many made. The page that
// holds it last is the live one: earlier commits left copies in free pages.
func flip(t testing.TB, path string, n int) {
	t.Helper()
	change(t, path, func(b []byte) []byte {
		found := 0
		for rest, at := b, 0; ; {
			i := bytes.Index(rest, []byte(marker(n)))
			if i < 0 {
				break
			}
			b[at+i+5] ^= 0x10
			found++
			at += i + 6
			rest = b[at:]
		}
		if found == 0 {
			t.Fatalf("event %d is not in the file", n)
		}
		return b
	})
}

// withBolt opens the file with the engine and changes it behind the journal's back.
func withBolt(t testing.TB, path string, edit func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(edit); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func key(seq uint64) []byte {
	return []byte{byte(seq >> 56), byte(seq >> 48), byte(seq >> 40), byte(seq >> 32), byte(seq >> 24), byte(seq >> 16), byte(seq >> 8), byte(seq)}
}

// untouched returns a function that fails the test if the file, its times or its
// directory are not as they were.
func untouched(t testing.TB, path string) (check func()) {
	t.Helper()
	before := fingerprint(t, path)
	return func() {
		t.Helper()
		if after := fingerprint(t, path); after != before {
			t.Errorf("the journal was touched:\nbefore %s\nafter  %s", before, after)
		}
	}
}

func fingerprint(t testing.TB, path string) string {
	t.Helper()
	var b strings.Builder
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v %d %d;", e.Name(), info.Mode(), info.Size(), info.ModTime().UnixNano())
	}
	if content, err := os.ReadFile(path); err == nil {
		fmt.Fprintf(&b, "%x", sha256.Sum256(content))
	}
	return b.String()
}
