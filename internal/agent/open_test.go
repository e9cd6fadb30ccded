// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

// filled returns a data directory whose journal holds one pod.
func filled(t *testing.T) (dir, path string) {
	t.Helper()
	dir = shortDir(t)
	r := start(t, configFor(dir))
	r.set(newPod(0))
	r.stop()
	return dir, filepath.Join(dir, journal.FileName)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func destroyMetas(data []byte) []byte {
	data = bytes.Clone(data)
	clear(data[:2*os.Getpagesize()])
	return data
}

// C25: starts on files that are not journals.
func TestC25(t *testing.T) {
	t.Run("empty file, new directory", func(t *testing.T) {
		dir := shortDir(t)
		write(t, filepath.Join(dir, journal.FileName), nil)
		r := start(t, configFor(dir))
		r.logged("journal file was there but empty")
		r.set(newPod(0))
	})
	t.Run("empty file, with mark", func(t *testing.T) {
		dir, path := filled(t)
		write(t, path, nil)
		_, err := begin(t, configFor(dir))
		if !errors.Is(err, journal.ErrEmpty) || !strings.Contains(err.Error(), "--move-damaged-aside") {
			t.Errorf("got %v", err)
		}
		if len(read(t, path)) != 0 {
			t.Error("the file was replaced")
		}
	})
	for name, content := range map[string][]byte{
		"100 bytes": bytes.Repeat([]byte{0xA7, 0x13}, 50),
		"text":      bytes.Repeat([]byte("some text\n"), 1000),
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			path := filepath.Join(dir, journal.FileName)
			write(t, path, content)
			_, err := begin(t, configFor(dir))
			if !errors.Is(err, journal.ErrNotJournal) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a journal") {
				t.Errorf("got %v", err)
			}
			if !bytes.Equal(read(t, path), content) {
				t.Error("the file was changed")
			}
		})
	}
}

// C21: moves a broken journal aside, once and only when asked to.
func TestC21(t *testing.T) {
	dir, path := filled(t)
	broken := destroyMetas(read(t, path))
	write(t, path, broken)
	c := configFor(dir)
	_, err := begin(t, c)
	if err == nil || !strings.Contains(err.Error(), "--move-damaged-aside") || !strings.Contains(err.Error(), path) {
		t.Errorf("without the option: got %v", err)
	}
	if !bytes.Equal(read(t, path), broken) {
		t.Fatal("without the option: the file was changed")
	}

	c.MoveDamagedAside = true
	r := start(t, c)
	r.logged("moved aside")
	r.set(newPod(7))
	r.stop()
	aside, err := filepath.Glob(path + ".damaged-*")
	if err != nil || len(aside) != 1 || !bytes.Equal(read(t, aside[0]), broken) {
		t.Fatalf("got %v, %v, want the broken file under another name", aside, err)
	}
	r = start(t, c)
	r.get(newPod(7))
	r.stop()
	if again, _ := filepath.Glob(path + ".damaged-*"); len(again) != 1 {
		t.Errorf("the second start moved something: %v", again)
	}
}

// C21: starts anew only when asked to.
func TestC21_Missing(t *testing.T) {
	dir, path := filled(t)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c := configFor(dir)
	if _, err := begin(t, c); !errors.Is(err, journal.ErrMissing) {
		t.Errorf("got %v, want %v", err, journal.ErrMissing)
	}
	c.MoveDamagedAside = true
	start(t, c).logged("journal is missing")
}

// C26: cuts off a part that holds data.
func TestC26(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, journal.FileName)
	r := start(t, configFor(dir))
	for i := range 400 {
		noise := make([]byte, 6000)
		rand.Read(noise)
		r.set(newPod(i, message(base64.StdEncoding.EncodeToString(noise))))
	}
	r.stop()
	whole := read(t, path)
	for _, size := range []int{len(whole) * 6 / 10, 3 * os.Getpagesize()} {
		write(t, path, whole[:size])
		_, err := begin(t, configFor(dir))
		if !errors.Is(err, journal.ErrTruncated) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), strconv.Itoa(size)) {
			t.Errorf("%d of %d bytes: got %v, want %v", size, len(whole), err, journal.ErrTruncated)
		}
	}
}

// C27: refuses a journal of a newer release, also with the recovery option.
func TestC27(t *testing.T) {
	dir, path := filled(t)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		value := bytes.Clone(b.Get([]byte("format")))
		value[len(value)-1]++
		return b.Put([]byte("format"), value)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	newer := read(t, path)
	c := configFor(dir)
	c.MoveDamagedAside = true
	_, err = begin(t, c)
	if !errors.Is(err, journal.ErrNewerFormat) || strings.Contains(err.Error(), "aside") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(read(t, path), newer) {
		t.Error("the file was changed")
	}
}

func TestWrongNode(t *testing.T) {
	dir, _ := filled(t)
	c := configFor(dir)
	c.Node, c.MoveDamagedAside = "node-2", true
	if _, err := begin(t, c); !errors.Is(err, journal.ErrWrongNode) {
		t.Errorf("got %v, want %v", err, journal.ErrWrongNode)
	}
}

// C59: looks at the modes of what the agent makes and finds.
func TestC59(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := shortDir(t)
	r := start(t, configFor(dir))
	r.set(newPod(0))
	wantMode := func(path string, want os.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: got mode %04o, want %04o", path, got, want)
		}
	}
	path := filepath.Join(dir, journal.FileName)
	wantMode(dir, 0o700)
	wantMode(path, 0o600)
	wantMode(path+journal.MarkSuffix, 0o600)
	wantMode(r.socket, 0o600)
	r.stop()
	wantMode(dir, 0o700)
	wantMode(path, 0o600)
	wantMode(path+journal.MarkSuffix, 0o600)

	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, configFor(dir)).logged("journal was open to others")
	wantMode(path, 0o600)
}

// C59: finds a data directory in which others could replace the journal.
func TestC59_DataDir(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for _, tt := range []struct {
		mode os.FileMode
		want string // in the error; empty: it starts
	}{
		{0o700, ""}, {0o750, ""}, {0o755, ""},
		{0o777, "everybody may write"}, {0o1777, "everybody may write"}, {0o702, "everybody may write"},
		{0o775, "its group may write"}, {0o720, "its group may write"},
	} {
		dir := shortDir(t)
		if err := os.Mkdir(dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		r, err := begin(t, configFor(dir))
		if tt.want == "" {
			if err != nil {
				t.Errorf("mode %04o: got %v", tt.mode, err)
				continue
			}
			r.stop()
			continue
		}
		if !errors.Is(err, ErrInsecure) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "chmod 0700 "+dir) {
			t.Errorf("mode %04o: got %v, want %v with %q and the remedy", tt.mode, err, ErrInsecure, tt.want)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("mode %04o: got %v, %v, want nothing made in it", tt.mode, entries, err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	dir := shortDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if _, err := begin(t, configFor(dir)); !errors.Is(err, ErrInsecure) || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("another user's: got %v, want %v", err, ErrInsecure)
	}
}

func TestConfig(t *testing.T) {
	dir := shortDir(t)
	tests := []struct {
		name string
		edit func(*Config)
	}{
		{"no data directory", func(c *Config) { c.DataDir = "" }},
		{"mode", func(c *Config) { c.Mode = "x" }},
		{"negative workers", func(c *Config) { c.Workers = -1 }},
		{"rate that is no number", func(c *Config) { c.QPS = float32(math.NaN()) }},
		{"rate without end", func(c *Config) { c.QPS = float32(math.Inf(1)) }},
		{"negative timeout", func(c *Config) { c.DrainTimeout = -1 }},
		{"record without API server", func(c *Config) { c.Mode = ModeRecord }},
		{"all nodes in manage mode", func(c *Config) { c.Node, c.AllNodes = "", true }},
		{"long socket path", func(c *Config) { c.Socket = "/tmp/" + strings.Repeat("x", 120) }},
		{"no such group", func(c *Config) { c.SocketGroup = "no-such-group" }},
		{"no such user", func(c *Config) { c.AllowUsers = []string{"no-such-user"} }},
		{"no such reader", func(c *Config) { c.ReadOnlyGroups = []string{"no-such-group"} }},
		{"nobody's number", func(c *Config) { c.ReadOnlyUsers = []string{"4294967295"} }},
		{"listen on all addresses", func(c *Config) { c.Listen = ":0" }},
		{"listen on a name", func(c *Config) { c.Listen = "example.com:80" }},
		{"negative history", func(c *Config) { c.Retention.EventsPerPod = -1 }},
		{"node name", func(c *Config) { c.Node = "Node_1" }},
		{"no directory for the socket", func(c *Config) { c.Socket = "/no/such/dir/s" }},
		{"file for the socket's directory", func(c *Config) { c.Socket = "/etc/passwd/s" }},
		{"no port", func(c *Config) { c.Listen = "127.0.0.1:70000" }},
		{"listen without port", func(c *Config) { c.Listen = "127.0.0.1" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := configFor(dir)
			tt.edit(&c)
			if _, err := begin(t, c); !errors.Is(err, ErrConfig) {
				t.Errorf("got %v, want %v", err, ErrConfig)
			}
			// A failed start leaves no trace in the journal.
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data directory: got %v, want it untouched", err)
			}
		})
	}
}

// C61: keeps control characters of pods and clients out of the log, at the start
// too, when the server refuses a status and quotes it.
func TestC61_Log(t *testing.T) {
	odd := "ok\x1b]52;c;QUJD\x07\x1b[2J\x7f\u009b31m"
	api, kubeconfig := newAPI(t, newPod(0))
	api.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Code: http.StatusUnprocessableEntity, Message: "no such message: " + odd + "two\r\nlines"})
	c := configFor(shortDir(t))
	c.Kubeconfig = kubeconfig
	for range 2 {
		r := start(t, c)
		r.set(newPod(0, message(odd), func(p *v1.Pod) { p.Status.Reason = "two\r\nlines" }))
		if code, _, err := r.try(http.MethodPut, httpapi.PodStatusPath("default", "web-1"), newPod(1, func(p *v1.Pod) { p.Status.Phase = v1.PodPhase(odd) })); err != nil || code < 400 {
			t.Errorf("got %d, %v", code, err)
		}
		eventually(t, 10*time.Second, func() bool { return strings.Contains(r.log.String(), "pod is put aside") })
		r.stop()
		if i := strings.IndexFunc(r.log.String(), func(c rune) bool { return c < ' ' && c != '\n' || c >= 0x7f && c <= 0x9f }); i >= 0 {
			t.Errorf("a control character in the log: %q", r.log.String()[max(0, i-40):])
		}
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, "pod is put aside") && (!strings.Contains(line, `ok\x1b]52;c;QUJD\a\x1b[2J`) || !strings.Contains(line, `two\r\nlines`)) {
				t.Errorf("the text is not to be recognised, or not in one line: %s", line)
			}
		}
	}
}

// TestOpen_EmptyKubeconfig: the message is of what can be done about it here.
func TestOpen_EmptyKubeconfig(t *testing.T) {
	for content, want := range map[string]string{
		"":                               " names no cluster",
		"apiVersion: v1\nkind: Config\n": " names no cluster",
		"apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n": " has no usable current-context",
	} {
		c := configFor(shortDir(t))
		c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(c.Kubeconfig, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Run(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), c.Kubeconfig+want) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
			t.Errorf("%q: got %v", content, err)
		}
	}
}

// TestOpen_NamedPipe in the place of the journal is not waited for.
func TestOpen_NamedPipe(t *testing.T) {
	c := configFor(shortDir(t))
	if err := errors.Join(os.Mkdir(c.DataDir, 0o700), syscall.Mkfifo(filepath.Join(c.DataDir, journal.FileName), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), c); !errors.Is(err, journal.ErrNotJournal) || !strings.Contains(err.Error(), "a named pipe") {
		t.Errorf("got %v", err)
	}
}
