// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

// mountsEnv is set in a process that has mounts of its own.
const mountsEnv = "STATUSSTORE_TEST_MOUNTS"

// withMounts runs the calling test again in a process with a mount table of its
// own, and returns true there. Root needs no more than that; anybody else becomes
// root of a user namespace, where that is allowed. What is mounted goes with the
// process. wantLine is what of its output is worth showing.
func withMounts(t *testing.T, wantLine string) bool {
	t.Helper()
	if os.Getenv(mountsEnv) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			cannotMount(err)
		}
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), mountsEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWNS | unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skipf("no mounts of its own: %v", err)
	}
	if cmd.ProcessState.ExitCode() == exitUnsupported {
		t.Skipf("%s", bytes.TrimSpace(out))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", bytes.Join(regexp.MustCompile(`(?m)`+wantLine).FindAll(out, -1), []byte("\n")))
	return false
}

// cannotMount ends a process that may not.
func cannotMount(err error) {
	fmt.Println("this needs the right to mount a small file system:", err)
	os.Exit(exitUnsupported)
}

// C45 through the agent, on a real file system that is full. What the reserve is
// for still fits: the end of a pod, and what says so to the server.
func TestC45_FullDisk(t *testing.T) {
	t.Parallel()
	if !withMounts(t, `\S+: \d+ statuses of .*$`) {
		return
	}
	dir := shortDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m,mode=700"); err != nil {
		cannotMount(err)
	}
	const pods = 30
	var live []*v1.Pod
	for i := range pods {
		live = append(live, once(i))
	}
	api, kubeconfig := newAPI(t, live...)
	c := childConfig{Dir: dir, Kubeconfig: kubeconfig, PassInterval: 50 * time.Millisecond, MaxEvents: 1 << 20}
	p := launch(t, c)
	for i := range pods {
		p.set(once(i, message("small")))
	}
	eventually(t, 20*time.Second, func() bool { return len(acksOnDisk(p)) == pods })
	filler := fill(t, dir, 64<<10)

	random := rand.NewChaCha8([32]byte{4, 5})
	large := func() func(*v1.Pod) {
		b := make([]byte, 2048)
		random.Read(b) //nolint:errcheck // it does not fail
		return message(fmt.Sprintf("%x", b))
	}
	newest := map[string]string{}
	accepted, code, answer := 0, 0, ""
	put := func(pod *v1.Pod) int {
		t.Helper()
		code, header, body, err := p.exchange(http.MethodPut, httpapi.PodStatusPath(pod.Namespace, pod.Name), pod)
		if err != nil {
			t.Fatal(err)
		}
		answer = string(body)
		switch code {
		case http.StatusOK:
			accepted++
			newest[pod.Name] = pod.Status.Message
		case http.StatusInsufficientStorage:
			if !strings.Contains(answer, "no space left on device") || header.Get("Retry-After") == "" {
				t.Errorf("507 with %s", answer)
			}
		default:
			t.Fatalf("PUT: %d %s", code, body)
		}
		return code
	}
	for i := 0; code != http.StatusInsufficientStorage; i++ {
		if i > 5000 {
			t.Fatal("the disk takes everything")
		}
		code = put(once(i%pods, large()))
	}
	before := p.shown(once(0))
	for range 10 {
		if code := put(once(0, large())); code != http.StatusInsufficientStorage {
			t.Errorf("PUT on a full disk: %d", code)
		}
	}
	if got := p.shown(once(0)); got != before {
		t.Errorf("a refused status is shown: %+v after %+v", got.version, before.version)
	}
	for _, path := range []string{"/readyz", "/healthz"} {
		if code, _, body, _ := p.exchange(http.MethodGet, path, nil); code != http.StatusServiceUnavailable || !strings.Contains(string(body), "no space left") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if s := p.status(); !s.Degraded || !strings.Contains(s.DegradedReason, "no space left") {
		t.Errorf("status: degraded %v, %q", s.Degraded, s.DegradedReason)
	}
	if code := p.code("/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d", code)
	}
	if code := p.code(httpapi.PathEvents); code != http.StatusOK {
		t.Errorf("events: %d", code)
	}

	// What ends pods fits, and is sent.
	const ends = 20
	for i := range ends {
		if code := put(once(i, exited, message(fmt.Sprint("ended ", i)))); code != http.StatusOK {
			t.Fatalf("terminal status %d of %d on a full disk: %d %s", i, ends, code, answer)
		}
		p.call(http.MethodPost, httpapi.FinishedPath(once(i).UID), nil, nil)
	}
	eventually(t, 20*time.Second, func() bool {
		for i := range ends {
			if pod, ok := api.Pod("default", once(i).Name); ok && pod.Status.Phase != v1.PodFailed {
				return false
			}
		}
		return p.status().Pending == 0
	})
	if code := put(once(pods-1, large())); code != http.StatusInsufficientStorage {
		t.Errorf("an ordinary status on a full disk after the terminal ones: %d", code)
	}

	// Killed while it is full, the agent comes back and still reads and syncs.
	p.kill()
	p.quiet = true
	p = launch(t, c)
	for name, want := range newest {
		if got := p.shown(named(name)); got.message != want {
			t.Errorf("%s: after a restart on a full disk %.40q, want %.40q", name, got.message, want)
		}
	}
	full := accepted
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if code := put(once(pods-1, message("there is room again"))); code != http.StatusOK {
		t.Errorf("PUT with room: %d %s", code, answer)
	}
	eventually(t, 10*time.Second, func() bool { return p.code("/readyz") == http.StatusOK && !p.status().Degraded })
	p.kill()
	p.quiet = true
	p = launch(t, c)
	for name, want := range newest {
		if got := p.shown(named(name)); got.message != want {
			t.Errorf("%s: %.40q, want %.40q", name, got.message, want)
		}
	}
	stored := 0
	for _, e := range p.eventsFrom(1) {
		if e.Kind == "set" {
			stored++
		}
	}
	if stored != accepted+pods {
		t.Errorf("%d statuses are stored, %d were accepted", stored, accepted+pods)
	}
	t.Logf("%d statuses of 4 KiB until 507 on a tmpfs of 16 MiB, then %d terminal ones and finished marks; after room was made 200 without a restart", full-ends, ends)
	p.kill()
}

func named(name string) *v1.Pod {
	pod := newPod(0)
	pod.Name = name
	return pod
}

// code asks for a path.
func (p *process) code(path string) int {
	p.t.Helper()
	code, _, _, err := p.exchange(http.MethodGet, path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return code
}

// fill leaves that much room on a file system.
func fill(t *testing.T, dir string, leave int64) (filler string) {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err == nil {
		err = errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, int64(s.Bavail)*s.Bsize-leave), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return filler
}

// TestG10_DiskTurnsReadOnly has a real file system turn read-only below the agent,
// as ext4 does by itself when it finds an error. (Nobody else can do that: as long
// as the journal is open, the kernel refuses to remount.)
func TestG10_DiskTurnsReadOnly(t *testing.T) {
	t.Parallel()
	if !withMounts(t, `\S+: read-only: .*$`) {
		return
	}
	s := &sick{t: t, sent: map[string]int{}, accepted: map[string]string{}, refused: map[string]bool{}, config: childConfig{Dir: shortDir(t), PassInterval: 50 * time.Millisecond}}
	image := filepath.Join(t.TempDir(), "image")
	mount := mountExt4(t, image, s.config.Dir)
	var live []*v1.Pod
	for i := range sickPods {
		live = append(live, newPod(i))
	}
	s.api, s.config.Kubeconfig = newAPI(t, live...)
	s.disk = &disk{t, filepath.Join(t.TempDir(), "none")}
	s.p = launch(t, s.config)
	for i := range sickPods {
		if code := s.put(i); code != http.StatusOK {
			t.Fatalf("PUT: %d", code)
		}
	}
	eventually(t, 20*time.Second, func() bool { return len(acksOnDisk(s.p)) == sickPods })
	before := s.p.shown(newPod(0))
	if err := unix.Mount("", s.config.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "errors=remount-ro"); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("remount with an open journal: %v, want EBUSY", err)
	}

	if err := os.WriteFile("/sys/fs/ext4/"+mount+"/trigger_fs_error", []byte("statusstore test"), 0o200); err != nil {
		cannotMount(err)
	}
	c := diskCase{code: http.StatusServiceUnavailable, cause: erofs, rules: []diskRule{{}}}
	if code := s.put(0); code != c.code {
		t.Errorf("PUT: %d, want %d", code, c.code)
	}
	s.during(c, before)
	// Statuses are in memory. What is only in the file can't be read while it can't
	// be opened for writing, and says so.
	_, _, events, err := s.p.exchange(http.MethodGet, httpapi.PathEvents, nil)
	if err != nil || !strings.Contains(string(events), journal.ErrDegraded.Error()) {
		t.Errorf("events: %v %s", err, events)
	}
	if code := s.p.code(httpapi.HistoryPath(newPod(0).UID)); code != http.StatusServiceUnavailable {
		t.Errorf("history: %d", code)
	}
	s.p.kill()
	s.p.quiet = true

	// Such a file system has to be mounted anew.
	if err := unix.Unmount(s.config.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("fsck.ext4", "-p", image).CombinedOutput(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() > 1 { // 1: corrected
			t.Fatalf("fsck: %v\n%s", err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, s.config.Dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, out)
	}
	s.verified()
	s.p = launch(t, s.config)
	s.reads()
	if code := s.put(0); code != http.StatusOK {
		t.Errorf("PUT after the file system was mounted anew: %d", code)
	}
	s.p.acked(newPod(0))
	s.p.kill()
	if err := unix.Unmount(s.config.Dir, 0); err != nil {
		t.Error(err)
	}
	t.Logf("read-only: PUT %d, /readyz and /healthz 503, /livez 200, degraded, statuses are read and sent, history 503; writes after a new mount and start", c.code)
}

// mountExt4 makes a small file system in a file, mounts it, and returns the name
// of its device.
func mountExt4(t *testing.T, image, dir string) (device string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(image, nil, 0o600)
	if err := errors.Join(err, os.Truncate(image, 32<<20)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop,errors=remount-ro", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			cannotMount(fmt.Errorf("%s: %w: %s", args[0], err, bytes.TrimSpace(out)))
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == dir {
			return filepath.Base(f[0])
		}
	}
	t.Fatalf("%s is not among the mounts", dir)
	return ""
}
