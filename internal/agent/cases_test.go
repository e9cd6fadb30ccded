// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/statusstore/statusstore/internal/dump"
	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// dumped is what a run of journal-dump left.
type dumped struct {
	code     int
	out, err string
}

func journalDump(args ...string) dumped {
	var out, errs bytes.Buffer
	code := dump.Main(args, strings.NewReader(""), &out, &errs)
	return dumped{code, out.String(), errs.String()}
}

// events are what was printed as NDJSON, without openings. Each line must be one.
func (d dumped) events(t *testing.T) []wire.Event {
	t.Helper()
	var events []wire.Event
	for line := range strings.Lines(d.out) {
		var e wire.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %.200q", err, line)
		}
		if e.Kind != "opened" {
			events = append(events, e)
		}
	}
	return events
}

// C15: times that are finer than the server's are the same everywhere, and no
// reason to write again.
func TestC15_TimesSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	const want = `"startTime":"2026-01-01T12:00:00Z"`
	api, kubeconfig := newAPI(t, newPod(0))
	c := childConfig{Dir: shortDir(t), Kubeconfig: kubeconfig, PassInterval: 20 * time.Millisecond}
	p := launch(t, c)
	fine := json.RawMessage(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"default","name":"web-0","uid":"uid-0"},
		"spec":{"nodeName":"node-1","containers":[{"name":"app","image":"img"}]},
		"status":{"phase":"Running","startTime":"2026-01-01T12:00:00.987654321Z","conditions":[
		{"type":"example.com/gate","status":"True","lastProbeTime":"2026-01-01T12:00:00.123456789Z","lastTransitionTime":"2026-01-01T12:00:00.987654321Z"}]}}`)
	check := func(when string) {
		t.Helper()
		eventually(t, 10*time.Second, func() bool { s := p.status(); return s.LiveSynced && s.Pending == 0 })
		time.Sleep(10 * c.PassInterval) // passes that find nothing to do leave no trace
		if got := p.shown(newPod(0)); got.version != 1 {
			t.Errorf("%s: version %d, want 1", when, got.version)
		}
		if code, _, body, err := p.exchange(http.MethodGet, httpapi.PodPath("default", "web-0"), nil); err != nil || code != http.StatusOK || !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: HTTP: got %d %v: %s, want %s", when, code, err, body, want)
		}
		for _, args := range [][]string{{"-o", "ndjson"}, {"state", "-o", "ndjson"}} {
			if got := journalDump(append(args, "--socket", p.socket)...); got.code != 0 || strings.Count(got.out, want) != 1 || strings.Count(got.out, "startTime") != 1 {
				t.Errorf("%s: journal-dump %v: exit code %d: %s%s, want %s once", when, args, got.code, got.out, got.err, want)
			}
		}
		if n := len(api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}})); n != 1 {
			t.Errorf("%s: %d PATCHes, want 1", when, n)
		}
	}
	for _, when := range []string{"first", "the same input again"} {
		p.call(http.MethodPut, httpapi.PodStatusPath("default", "web-0"), fine, nil)
		check(when)
	}
	p.kill()
	if got := journalDump("-o", "ndjson", c.Dir); got.code != 0 || strings.Count(got.out, want) != 1 {
		t.Errorf("after the kill: journal-dump: exit code %d: %s%s, want %s once", got.code, got.out, got.err, want)
	}
	p = launch(t, c)
	check("after the restart")
	p.call(http.MethodPut, httpapi.PodStatusPath("default", "web-0"), fine, nil)
	check("the same input after the restart")
	p.kill()
}

// C53: a dump of a journal that is in use says what to type, which works, and
// neither disturbs the agent.
func TestC53_DumpWhileTheAgentRuns(t *testing.T) {
	t.Parallel()
	const callers, each = 4, 25 // 100 calls a second
	dir := shortDir(t)
	p := launch(t, childConfig{Dir: dir})
	stop := make(chan struct{})
	var group sync.WaitGroup
	var mu sync.Mutex
	calls, longest := 0, time.Duration(0) // guarded by mu
	end := sync.OnceFunc(func() { close(stop); group.Wait() })
	defer end()
	for i := range callers {
		group.Go(func() {
			tick := time.NewTicker(time.Second / each)
			defer tick.Stop()
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				began := time.Now()
				code, header, body, err := p.exchange(http.MethodPut, httpapi.PodStatusPath("default", newPod(i).Name), newPod(i, message(fmt.Sprint(n))))
				if err != nil || code != http.StatusOK || header.Get(httpapi.HeaderVersion) != fmt.Sprint(n) {
					t.Errorf("call %d of %d failed: %d %v, version %s: %s", n, i, code, err, header.Get(httpapi.HeaderVersion), body)
					return
				}
				mu.Lock()
				calls, longest = calls+1, max(longest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	measured := func() (int, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		return calls, longest
	}
	eventually(t, 10*time.Second, func() bool { n, _ := measured(); return n >= 50 })
	_, before := measured()
	for range 2 {
		known, _ := measured()
		began := time.Now()
		for _, file := range []string{dir, filepath.Join(dir, journal.FileName)} {
			got := journalDump(file)
			if got.code == 0 || got.out != "" {
				t.Errorf("%s: exit code %d, stdout %q, want a refusal", file, got.code, got.out)
			}
			for _, word := range []string{filepath.Join(dir, journal.FileName), "in use", "--socket " + p.socket} {
				if !strings.Contains(got.err, word) {
					t.Errorf("%s: stderr %q lacks %q", file, got.err, word)
				}
			}
		}
		if took := time.Since(began); took > slack*5*time.Second {
			t.Errorf("two refusals took %v", took)
		}
		began = time.Now()
		got := journalDump("-o", "ndjson", "--socket", p.socket)
		if got.code != 0 || got.err != "" {
			t.Fatalf("through the socket: exit code %d: %s", got.code, got.err)
		}
		if took := time.Since(began); took > slack*5*time.Second {
			t.Errorf("through the socket: it took %v", took)
		}
		// Consistent: all of a moment, and nothing else.
		events, versions := got.events(t), map[string]journal.Version{}
		for i, e := range events {
			versions[e.Name]++
			if e.Sequence != journal.Sequence(i+2) || e.Version != versions[e.Name] || e.Status == nil || e.Status.Message != fmt.Sprint(e.Version) {
				t.Fatalf("event %d of the dump is sequence %d, version %d of %s, want version %d", i, e.Sequence, e.Version, e.Name, versions[e.Name])
			}
		}
		if len(events) < known {
			t.Errorf("the dump has %d events of at least %d", len(events), known)
		}
	}
	end()
	if n, after := measured(); after > before+slack*time.Second {
		t.Errorf("of %d calls the longest took %v, %v before the dumps", n, after, before)
	}
	p.kill()
}

// C55: what is not a journal's is passed over by the agent, and left alone.
func TestC55_ForeignKeys(t *testing.T) {
	const pods = 5
	dir := shortDir(t)
	path := filepath.Join(dir, journal.FileName)
	r := start(t, configFor(dir))
	for i := range pods {
		r.set(newPod(i, message("before")))
	}
	r.stop()
	engine := func(work func(tx *bolt.Tx) error) {
		t.Helper()
		db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(work), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	const free = 7 + 100 // sequence 7 is the last opening
	engine(func(tx *bolt.Tx) error {
		other, err := tx.CreateBucket([]byte("other"))
		if err != nil {
			return err
		}
		events := tx.Bucket([]byte("events"))
		return errors.Join(other.Put([]byte("k"), []byte("v")), events.Put([]byte("alarm"), []byte("x")),
			events.Put([]byte{0, 0, 0, 0, 0, 0, 0, free}, nil))
	})

	r = start(t, configFor(dir))
	r.set(newPod(0, message("after")))
	wantServed := func(events []wire.Event) {
		t.Helper()
		var got []string
		for _, e := range events {
			if e.Error != "" || e.Status == nil {
				t.Errorf("event %d: %q", e.Sequence, e.Error)
				continue
			}
			got = append(got, e.Name+" "+e.Status.Message)
		}
		if text := strings.Join(got, ","); text != "web-0 before,web-1 before,web-2 before,web-3 before,web-4 before,web-0 after" {
			t.Errorf("got events %s", text)
		}
	}
	wantServed(r.events())
	for i := range pods {
		if got := r.get(newPod(i)); got.UID != newPod(i).UID {
			t.Errorf("got %s", got.UID)
		}
	}
	r.stop()

	got := journalDump("-o", "ndjson", dir)
	for _, word := range []string{`"alarm"`, `"other"`, fmt.Sprintf("sequence %d: empty value", free)} {
		if !strings.Contains(got.err, word) {
			t.Errorf("stderr %q lacks %q", got.err, word)
		}
	}
	if strings.Contains(got.err, "goroutine ") {
		t.Errorf("a stack trace: %s", got.err)
	}
	wantServed(got.events(t))
	engine(func(tx *bolt.Tx) error {
		if v := tx.Bucket([]byte("events")).Get([]byte("alarm")); string(v) != "x" {
			t.Errorf("alarm: got %q", v)
		}
		other := tx.Bucket([]byte("other"))
		if other == nil || string(other.Get([]byte("k"))) != "v" || other.Inspect().KeyN != 1 {
			t.Errorf("the bucket other is not as it was")
		}
		return nil
	})
}

// C56: a journal that may only be read is enough for a user who may only read.
func TestC56_MayOnlyRead(t *testing.T) {
	dir, _ := filled(t)
	path := filepath.Join(dir, journal.FileName)
	if err := errors.Join(os.Chmod(path, 0o444), os.Remove(path+journal.MarkSuffix), os.Chmod(dir, 0o555), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	before, content := modified(t, path), read(t, path)
	var first, second dumped
	<-asNobody(t, func() {
		first = journalDump("-o", "ndjson", path)
		second = journalDump(filepath.Join(dir, "missing.db"))
	})
	if first.code != 0 || first.err != "" || len(first.events(t)) == 0 {
		t.Errorf("exit code %d: %s%s", first.code, first.out, first.err)
	}
	if second.code == 0 || !strings.Contains(second.err, "missing.db") {
		t.Errorf("missing: exit code %d: %s", second.code, second.err)
	}
	if !modified(t, path).Equal(before) || !bytes.Equal(read(t, path), content) {
		t.Error("the journal was touched")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory: got %v, %v, want the journal only", entries, err)
	}
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// C58: replaces the socket of an agent that was killed, and takes its own away.
func TestC58_AfterSIGKILL(t *testing.T) {
	t.Parallel()
	c := childConfig{Dir: shortDir(t)}
	p := launch(t, c)
	p.set(newPod(0, message("kept")))
	p.kill()
	if info, err := os.Lstat(p.socket); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("after the kill: %v, %v, want the socket", info, err)
	}
	began := time.Now()
	next := launch(t, c)
	if got := next.get(newPod(0)); got.Status.Message != "kept" || next.socket != p.socket {
		t.Errorf("got %q on %s, want it on %s", got.Status.Message, next.socket, p.socket)
	}
	if took := time.Since(began); took > slack*2*time.Second {
		t.Errorf("the answer took %v", took)
	}
	if err := next.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-next.ended:
	case <-time.After(slack * 10 * time.Second):
		t.Fatal("SIGTERM did not end it")
	}
	if code := next.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after SIGTERM: exit code %d", code)
	}
	if _, err := os.Lstat(p.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after SIGTERM: got %v, want no socket", err)
	}
}
