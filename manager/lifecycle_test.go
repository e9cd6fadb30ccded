// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/syncer"
)

// contextWithoutEnd is for calls that must not leave their goroutine.
var contextWithoutEnd = context.Background()

func TestOpen_BadOptions(t *testing.T) {
	path := filepath.Join(t.TempDir(), journal.FileName)
	client := fake.NewClientset()
	tests := []struct {
		name string
		o    Options
		want error
	}{
		{"no path", Options{}, ErrInvalid},
		{"client without node", Options{Path: path, Client: client}, ErrInvalid},
		{"live pods without client", Options{Path: path, Live: syncer.NewLivePods(client, "n", syncer.LiveOptions{})}, ErrNoClient},
		{"syncer's own", Options{Path: path, Node: "n", Client: client, Sync: SyncOptions{Workers: -1}}, syncer.ErrOptions},
		{"journal's own", Options{Path: path, LockTimeout: -1}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Open(tt.o)
			if m != nil || err == nil {
				t.Fatalf("opened: %v, %v", m, err)
			}
			if tt.want != nil {
				wantError(t, err, tt.want)
			}
		})
	}
	// Nothing stayed open.
	open(t, func(o *Options) { o.Path = path })
}

func TestOpen_LockedByAnother(t *testing.T) {
	s := open(t)
	_, err := Open(Options{Path: s.opts.Path, LockTimeout: 1})
	wantError(t, err, journal.ErrLocked)
}

func TestOpen_WrongNode(t *testing.T) {
	s := open(t, func(o *Options) { o.Node = "node-1" })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Path: s.opts.Path, Node: "node-2"})
	wantError(t, err, journal.ErrWrongNode)
}

// TestG8_UnreadableStatusIsRefused: a record that is sound but holds no status is
// an error that names the file, the place and what helps, and the file stays.
func TestG8_UnreadableStatusIsRefused(t *testing.T) {
	tests := []struct {
		name string
		edit func(*journal.Event)
		want error
	}{
		{"garbled status", func(e *journal.Event) { e.Status = []byte{0xff} }, journal.ErrCorrupt},
		{"unknown encoding", func(e *journal.Event) { e.ContentType = "cbor" }, journal.ErrNewerFormat},
		{"newer resize slots", func(e *journal.Event) { e.Aux = []byte{99} }, journal.ErrNewerFormat},
		{"garbled resize slots", func(e *journal.Event) { e.Aux = []byte{resizeFormat, 0xff} }, journal.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), journal.FileName)
			j, err := journal.Open(path, journal.Options{})
			if err != nil {
				t.Fatal(err)
			}
			e := journal.Event{Kind: journal.KindSet, UID: "uid-a", Namespace: "default", Name: "web-0", ContentType: journal.ContentTypeProtobuf}
			tt.edit(&e)
			_, err = j.Append(t.Context(), e)
			if err := errors.Join(err, j.Close()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err = Open(Options{Path: path})
				wantError(t, err, tt.want)
				if c, ok := errors.AsType[*journal.CorruptError](err); !ok || c.Path != path || c.Sequence != 2 && !strings.Contains(err.Error(), "event 2") || c.Hint == "" {
					t.Errorf("error %v does not name file, place and what helps", err)
				}
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClose_IsIdempotentAndFinal(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	calls := map[string]func() error{
		"SetPodStatus, unchanged": func() error { _, err := s.SetPodStatus(ctx, pod(), runningReady()); return err },
		"SetPodStatus":            func() error { _, err := s.SetPodStatus(ctx, pod(), runningReady(text("x"))); return err },
		"SetContainerReadiness":   func() error { _, err := s.SetContainerReadiness(ctx, "uid-a", appID, false); return err },
		"SetContainerStartup":     func() error { _, err := s.SetContainerStartup(ctx, "uid-a", appID, false); return err },
		"SetPodVolumeHealth":      func() error { _, err := s.SetPodVolumeHealth(ctx, "uid-a", "v", nil); return err },
		"SetPodResizePending":     func() error { _, err := s.SetPodResizePending(ctx, "uid-a", "", "", 1); return err },
		"TerminatePod":            func() error { _, err := s.TerminatePod(ctx, pod()); return err },
		"FinishPod":               func() error { _, err := s.FinishPod(ctx, "uid-a"); return err },
		"Observe":                 func() error { _, err := s.Observe(ctx, pod()); return err },
		"Remove":                  func() error { return s.Remove(ctx, "uid-a", journal.ReasonDeleted) },
		"RemoveOrphanedStatuses":  func() error { _, err := s.RemoveOrphanedStatuses(ctx, nil); return err },
		"SyncOnce":                func() error { return s.SyncOnce(ctx) },
		"Run":                     func() error { return s.Run(ctx) },
		"Writable":                func() error { return s.Writable() },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: error %v, want %v", name, err, ErrClosed)
		}
	}
	s.stored("uid-a") // reads still answer
}

func TestRun_WithoutClient(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	s.set(pod(), runningReady())
	wantError(t, s.SyncOnce(t.Context()), ErrNoClient)
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	wantError(t, s.Run(t.Context()), ErrAlreadyRun)
}

func TestUpdate_ContextEndsWhileWaiting(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	if err := s.locks.lock(t.Context(), "uid-a"); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.SetPodStatus(ctx, pod(), runningReady(text("x")))
		done <- err
	}()
	cancel(cause)
	wantError(t, <-done, cause)
	s.locks.unlock("uid-a")
	s.wantVersion("uid-a", 1)
	_, err := s.SetPodStatus(ctx, pod(), runningReady(text("x")))
	wantError(t, err, cause)
	s.wantVersion("uid-a", 1)
	s.set(pod(), runningReady(text("x")))
	if n := len(s.locks.locks); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

func TestDetached(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	release, ended := make(chan struct{}), make(chan struct{})
	cause := errors.New("the caller left")
	cancel(cause)
	_, err := detached(ctx, func() (int, error) {
		<-release
		close(ended)
		return 1, nil
	})
	wantError(t, err, cause)
	close(release)
	<-ended // what it stopped waiting for still happened
	if v, err := detached(t.Context(), func() (int, error) { return 2, nil }); v != 2 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
}

func TestObserve(t *testing.T) {
	s := open(t)
	// What no caller may store is recorded as it is seen.
	seen := pod(never, withStatus(status(v1.PodFailed, terminated("app", 1, "Error"))))
	c, err := s.Observe(t.Context(), seen)
	if err != nil || !c.Changed || c.Version != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if c, err := s.Observe(t.Context(), seen); err != nil || c.Changed {
		t.Errorf("the same again: %+v, %v", c, err)
	}
	if c, err := s.Observe(t.Context(), pod(never, withStatus(runningReady()))); err != nil || c.Version != 2 {
		t.Errorf("running after failed: %+v, %v", c, err)
	}
	if c, err := s.Observe(t.Context(), pod(mirrorPod("mirror"), withStatus(runningReady()))); err != nil || c.UID != "mirror" {
		t.Errorf("mirror: %+v, %v", c, err)
	}
	if _, ok := s.pods.PodByUID("mirror"); ok {
		t.Error("a mirror pod was found by its UID")
	}
	if _, static := s.pods.MirrorOf("mirror"); static {
		t.Error("a mirror pod counts as static")
	}
	for range 2 {
		if st := s.Status(); st.Pending != 0 || st.Pods != 2 {
			t.Errorf("%d of %d pods pending, want none of 2", st.Pending, st.Pods)
		}
		if _, ok := s.Pod("uid-a"); !ok {
			t.Error("the pod is not known")
		}
		s.reopen()
	}
	s.wantKinds("set/observed", "set/observed", "set/observed")
	var started bool
	for _, c := range s.stored("uid-a").ContainerStatuses {
		started = started || c.Started != nil && *c.Started
	}
	if got := s.stored("uid-a"); !started || got.StartTime != nil {
		t.Errorf("stored %+v, want it as seen", got)
	}
}

func TestStatus(t *testing.T) {
	s := open(t, func(o *Options) { o.Node = "node-1" })
	s.set(pod(), runningReady())
	s.set(pod(), runningReady(text("x")))
	s.set(pod(number(1)), runningReady())
	s.ack(journal.Ack{UID: "uid-a", LiveUID: "uid-a", Version: 1})
	st := s.Status()
	if st.Node != "node-1" || st.Epoch != 1 || st.HeadSequence != 4 || st.Pods != 2 || st.Pending != 2 ||
		st.AckedVersionsBehind != 2 || st.JournalBytes == 0 || st.OldestPending == nil || st.Degraded || st.UncleanStart {
		t.Errorf("status %+v", st)
	}
	encoded, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node", "epoch", "headSequence", "pods", "pending", "ackedVersionsBehind", "failing", "journalBytes", "lastSyncError", "degraded"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %q in %s", name, encoded)
		}
	}
	s.reopen()
	if st := s.Status(); st.Epoch != 2 || st.Pending != 2 || st.AckedVersionsBehind != 2 || st.UncleanStart {
		t.Errorf("status after the restart %+v", st)
	}
}

func TestReads(t *testing.T) {
	s := open(t)
	s.set(pod(), runningReady())
	again := pod(func(p *v1.Pod) { p.UID = "uid-new" })
	s.set(again, runningReady())
	var uids []string
	for _, e := range s.EntriesByName("default", "web-0") {
		uids = append(uids, string(e.UID))
	}
	if want := []string{"uid-new", "uid-a"}; !slices.Equal(uids, want) {
		t.Errorf("by name %q, want %q", uids, want)
	}
	if _, ok := s.GetPodStatus("nobody"); ok {
		t.Error("a status of nobody")
	}
	if _, ok := s.Pod("nobody"); ok {
		t.Error("a pod of nobody")
	}
	w := s.Watch()
	defer w.Stop()
	s.set(again, runningReady(text("x")))
	<-w.C
	if got := w.Take(); len(got) != 1 || got[0] != "uid-new" {
		t.Errorf("watched %q", got)
	}
}

func TestErrors_SayWhatHappened(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&InvalidError{"metadata.uid", "is required"}, "invalid: metadata.uid: is required"},
		{&VersionConflictError{"uid-a", 2, 3}, "version conflict: pod uid-a has version 3, not 2"},
		{&UIDConflictError{UID: "uid-a", Stored: nameOf(pod()), Given: nameOf(pod(number(1)))},
			"pod UID is in use by another pod: uid-a is stored as default/web-0, not default/web-1"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("error %q, want %q", got, tt.want)
		}
	}
	if errors.Is(&InvalidError{}, podstatus.ErrIllegalTransition) {
		t.Error("an InvalidError is a transition error")
	}
	for o := OutcomeNone; o <= OutcomeUnknownContainer; o++ {
		if o.String() == "" || o > OutcomeNone && o.String() == "none" {
			t.Errorf("outcome %d has no name", o)
		}
	}
}
