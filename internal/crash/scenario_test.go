// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

// copyName is where scenarios put a second journal: a snapshot, for one.
const copyName = "copy.db"

// recording is what a scenario leaves for those who check its images.
type recording struct {
	Log    *crash.Log
	States []state
	Limit  int // of events, as the scenario used it
	// Suspect: one meta page was torn before it began.
	Suspect bool
}

// state is what a directory may hold after a crash.
type state struct {
	Journal string // as of describe, or absent
	Copy    string
}

// scenario is a story told to a journal in one thread.
type scenario struct {
	name string
	// oneCommit: each step is at most one commit to an existing file, so that
	// files before and after it are enough to know what a crash could leave.
	oneCommit bool
	limit     int
	suspect   bool
	prepare   func(*run)
	tell      func(*run)
}

// run is one scenario under way.
type run struct {
	t        *testing.T
	dir      string
	scratch  string
	path     string
	options  journal.Options
	recorder *crash.Recorder
	attached bool
	random   *rand.Rand
	states   []state
	j        *journal.Journal

	// What was accepted, apart from what the journal says.
	versions map[types.UID]journal.Version
	statuses map[types.UID]string
}

func record(t *testing.T, s scenario, attach bool) recording {
	dir := fastDir(t)
	r := &run{t: t, dir: filepath.Join(dir, "data"), scratch: dir, random: rand.New(rand.NewPCG(1, 1)),
		versions: map[types.UID]journal.Version{}, statuses: map[types.UID]string{}}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.path = filepath.Join(r.dir, journal.FileName)
	r.options = journal.Options{Node: "node", Retention: journal.Retention{MaxEvents: s.limit, TombstoneAge: time.Nanosecond}}
	if s.prepare != nil {
		s.prepare(r)
	}
	var err error
	if r.recorder, err = crash.NewRecorder(r.dir); err != nil {
		t.Fatal(err)
	}
	if r.attached = attach; attach {
		if err := r.recorder.Attach(); err != nil {
			unsupported(err)
		}
	}
	r.states = append(r.states, r.look())
	r.expect("begin", 0, 0)
	r.rest()
	s.tell(r)
	if r.j != nil {
		r.close()
	}
	log, err := r.recorder.Log()
	if err != nil {
		t.Fatal(err)
	}
	return recording{log, r.states, s.limit, s.suspect}
}

func (r *run) expect(label string, from, to int) { r.recorder.Expect(label, from, to) }

func (r *run) rest() {
	if r.attached {
		r.recorder.Rest()
	}
}

// look describes the directory as it is. A state that can be seen while nothing
// is under way must be whole.
func (r *run) look() state {
	r.t.Helper()
	main, err1 := stateOf(r.dir, r.scratch, journal.FileName)
	second, err2 := stateOf(r.dir, r.scratch, copyName)
	if err := errors.Join(err1, err2); err != nil {
		r.t.Fatal(err)
	}
	r.compare(main.text)
	return state{main.text, second.text}
}

// compare looks for everything that was accepted.
func (r *run) compare(text string) {
	r.t.Helper()
	for uid, version := range r.versions {
		want := fmt.Sprintf(" %s default/pod version %d ", uid, version)
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, "newest ") && strings.Contains(line, want) && strings.Contains(line, " "+sum([]byte(r.statuses[uid]))+" ")
		}
		if !found {
			r.t.Fatalf("accepted: %s; the file has\n%s", want, text)
		}
	}
}

// step does one thing. A crash during it leaves what was before, what is after,
// or one of the states in between; after it, what is after.
func (r *run) step(label string, do func() error, between ...state) {
	r.t.Helper()
	last := len(r.states) - 1
	r.states = append(r.states, between...)
	next := len(r.states)
	r.expect(label, last, next)
	if err := do(); err != nil {
		r.t.Fatalf("%s: %v", label, err)
	}
	if !r.attached {
		r.recorder.Commit(journal.FileName)
	}
	r.states = append(r.states, r.look())
	r.expect("after "+label, next, next)
	r.rest()
}

func (r *run) open() {
	r.t.Helper()
	var between []state
	if _, err := os.Stat(r.path); err != nil {
		between = []state{{"head 0 epoch 0 trimmed to 0, 0 events of 0 bytes, closed in order\n", absent}}
	}
	r.step("open", func() (err error) {
		r.j, err = journal.Open(r.path, r.options)
		return err
	}, between...)
	r.wants(closing(false))
}

// wants looks for a word in what is there now.
func (r *run) wants(word string) {
	r.t.Helper()
	first, _, _ := strings.Cut(r.states[len(r.states)-1].Journal, "\n")
	if !strings.HasSuffix(first, ", "+word) {
		r.t.Errorf("%q, want %q", first, word)
	}
}

func (r *run) close() {
	r.t.Helper()
	r.step("close", r.j.Close)
	r.wants(closing(true))
	r.j = nil
}

// reopen opens what a killed process left.
func (r *run) reopen() {
	r.t.Helper()
	b, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	r.close()
	// In place of a kill, which would take us along: the bytes from before the
	// close. Nobody promises anything while they are put back.
	if err := errors.Join(os.WriteFile(r.path, b, 0o600), r.recorder.Settle()); err != nil {
		r.t.Fatal(err)
	}
	r.states = append(r.states, r.look())
	r.open()
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (r *run) append(label string, events ...journal.Event) {
	r.t.Helper()
	r.step(label, func() error {
		got, err := r.j.Append(r.t.Context(), events...)
		for _, e := range got {
			if e.Kind == journal.KindRejected {
				continue
			}
			if e.Version <= r.versions[e.UID] {
				r.t.Errorf("%s: version %d after %d", e.UID, e.Version, r.versions[e.UID])
			}
			r.versions[e.UID], r.statuses[e.UID] = e.Version, string(e.Status)
		}
		return err
	})
}

func (r *run) ack(uid types.UID, version journal.Version) {
	r.j.PutAck(journal.Ack{UID: uid, LiveUID: uid + "-live", Version: version, Time: time.Unix(1_700_000_000, int64(len(r.states)))})
}

func (r *run) flush() {
	r.t.Helper()
	r.step("flush acks", func() error { return r.j.Flush(r.t.Context()) })
}

// event is of pod number n; the status is size bytes that do not compress.
func (r *run) event(kind journal.Kind, n, size int) journal.Event {
	e := journal.Event{Kind: kind, UID: types.UID(fmt.Sprint("pod-", n)), Namespace: "default", Name: "pod"}
	if kind == journal.KindSet {
		e.Reason = journal.ReasonSet
	}
	if kind != journal.KindRemoved {
		e.ContentType, e.Status = journal.ContentTypeProtobuf, r.noise(size)
	}
	return e
}

func (r *run) noise(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.random.Uint32())
	}
	return b
}

func (r *run) withObject(e journal.Event, size int) journal.Event {
	e.Object, e.Aux = r.noise(size), r.noise(20)
	return e
}

func (s scenario) save(t *testing.T, path string) {
	rec := record(t, s, true)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gob.NewEncoder(f).Encode(rec), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string) (rec recording) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gob.NewDecoder(f).Decode(&rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// journal makes a closed journal before the recording begins.
func (r *run) journal(limit int, fill func(j *journal.Journal)) {
	r.t.Helper()
	o := r.options
	o.Retention.MaxEvents = limit
	j, err := journal.Open(r.path, o)
	if err != nil {
		r.t.Fatal(err)
	}
	fill(j)
	if err := j.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// tearNewestMeta damages the newer meta page, as a power cut during its write
// may on a disk whose sectors are not atomic.
func (r *run) tearNewestMeta() {
	b, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	const txid = 16 + 48
	page := 0
	if string(b[4096+txid:4096+txid+8]) > string(b[txid:txid+8]) { // little-endian, but small numbers
		page = 4096
	}
	b[page+20] ^= 0xff
	if err := os.WriteFile(r.path, b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// dropCopy removes the second journal for good.
func (r *run) dropCopy() error {
	return errors.Join(os.Remove(filepath.Join(r.dir, copyName)), syncFile(r.dir))
}
