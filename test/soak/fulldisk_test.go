// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

const (
	// mountsEnv is set in a process that has mounts of its own.
	mountsEnv    = "STATUSSTORE_SOAK_MOUNTS"
	cannotMount  = 77 // the exit code of one that may not mount
	smallDisk    = 24 * mib
	fullDiskTime = 10 * time.Second
)

// withMounts runs the calling test again in a process with a mount table of its
// own, as root of a user namespace unless it is root already, and returns true
// there.
func withMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mountsEnv) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			fmt.Println("no mounts of its own:", err)
			os.Exit(cannotMount)
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), mountsEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		t.Skipf("no mounts of its own: %v", err)
	case cmd.ProcessState.ExitCode() == cannotMount:
		t.Skipf("this needs the right to mount a small file system: %s", bytes.TrimSpace(out))
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", bytes.Join(regexp.MustCompile(`(?m)^.*_test.go:\d+: (.*)$`).FindAll(out, -1), []byte("\n")))
	return false
}

// TestG10_SoakOnAFullDisk keeps a small disk full while everybody writes, once
// before history has reached its limit, when no write brings free pages, and once
// after. Whatever becomes of ordinary statuses, each pod can end, that reaches the
// server, and is noted.
func TestG10_SoakOnAFullDisk(t *testing.T) {
	if !withMounts(t) {
		return
	}
	for _, tt := range []struct {
		name   string
		warmUp uint64
	}{{"before history is complete", 3000}, {"after history is complete", 40_000}} {
		t.Run(tt.name, func(t *testing.T) { soakFullDisk(t, tt.warmUp) })
	}
}

func soakFullDisk(t *testing.T, warmUp uint64) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDisk)); err != nil {
		fmt.Println(err)
		os.Exit(cannotMount)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	api, err := fakeapi.Listen(fakeapi.Options{RequestLog: 100, StatusLog: 2, EventWindow: 4000})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	const ending = 200
	slots := make([]*slot, 300)
	for i := range slots {
		slots[i] = newSlot(i)
	}
	on(t, api, slots...)
	s := open(t, dir, api, 0, journal.Retention{})
	s.write(warmUp, slots, api)
	before := s.stats()
	filler := fill(t, dir)

	// A third of the pods goes on as ever. Meanwhile the others end, one by one.
	var accepted, refused atomic.Int64
	var over atomic.Bool
	var group, ends sync.WaitGroup
	for w := range 32 {
		group.Go(func() {
			for !over.Load() {
				for i := ending + w; i < len(slots); i += 32 {
					switch err := s.set(t.Context(), slots[i]); {
					case err == nil:
						accepted.Add(1)
					case errors.Is(err, journal.ErrDegraded) && errors.Is(err, syscall.ENOSPC):
						refused.Add(1)
						time.Sleep(time.Millisecond)
					default:
						t.Errorf("%s: %v", slots[i].pod.Name, err)
						return
					}
				}
			}
		})
	}
	begin := time.Now()
	for w := range 8 {
		ends.Go(func() {
			for i := w; i < ending; i += 8 {
				time.Sleep(fullDiskTime * 8 / ending) // all the time that it takes
				if err := s.finish(t.Context(), slots[i]); err != nil {
					t.Errorf("%s can't end on a full disk, after %v, with %d bytes free: %v", slots[i].pod.Name, time.Since(begin), s.stats().FreeBytes, err)
					return
				}
			}
		})
	}
	ends.Wait()
	over.Store(true)
	group.Wait()
	s.holds(slots)
	delivered := func() bool {
		for _, p := range slots[:ending] {
			if live, ok := api.Pod(namespace, p.pod.Name); ok && live.Status.Message != p.newest {
				return false
			}
		}
		return true
	}
	for deadline := time.Now().Add(2 * time.Minute); !delivered(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server does not have all ends: %d pods are pending", s.Status().Pending)
		}
	}
	noted := 0
	for deadline := time.Now().Add(2 * time.Minute); noted < ending; time.Sleep(20 * time.Millisecond) {
		noted = 0
		for _, p := range slots[:ending] {
			if e, ok := s.Entry(p.pod.UID); ok && !e.Pending() {
				noted++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d ends are acked", noted, ending)
		}
	}
	// Acks become durable too, a few at a time.
	for range 2 * ending / 8 { // as the syncer does each second
		if err := s.Journal().Flush(t.Context()); err != nil {
			t.Fatalf("acks on a full disk: %v", err)
		}
	}
	after := s.stats()
	s.stop() // everything is in the file, without any room for it
	verify(t, dir)
	r, err := journal.OpenReadOnly(filepath.Join(dir, journal.FileName), journal.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	acks, err := r.Acks()
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	durable := 0
	for _, p := range slots[:ending] {
		if acks[p.pod.UID].Version == p.version {
			durable++
		}
	}

	s = open(t, dir, api, 0, journal.Retention{})
	s.holds(slots)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := s.set(t.Context(), slots[ending]); err != nil {
		t.Errorf("with room again: %v", err)
	}
	s.stop()
	verify(t, dir)
	t.Logf("disk of %d MiB full at %s events (%.1f MiB file): %d ordinary statuses accepted, %d refused with ENOSPC; %d of %d pods ended, marked finished, sent and acked, %d acks durable (%.1f MiB file)",
		smallDisk/mib, commas(uint64(before.Head)), float64(before.FileBytes)/mib, accepted.Load(), refused.Load(), noted, ending, durable, float64(after.FileBytes)/mib)
	if durable < ending*9/10 {
		t.Errorf("only %d acks of %d are durable", durable, ending)
	}
}

// fill takes all the room that a file system has.
func fill(t *testing.T, dir string) (filler string) {
	t.Helper()
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if err2 := f.Close(); !errors.Is(err, syscall.ENOSPC) || err2 != nil {
		t.Fatal(err, err2)
	}
	return filler
}
