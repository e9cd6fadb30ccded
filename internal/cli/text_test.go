// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/httpapi"
)

func TestEscape(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "größer than 日本", "größer than 日本"},
		{"colour", "\x1b[31mred", `\x1b[31mred`},
		{"lines", "a\nb\tc\r", `a\nb\tc\r`},
		{"C1 control", "a\u009bb", `a\x9bb`},
		{"direction", "a\u202eb", `a\u202eb`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"not UTF-8", "a\xffb", `a\xffb`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := escape(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzEscapeJSON(f *testing.F) {
	f.Add("a\u009b\u202e\U000e0001\x7f\n\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		if err := printJSON(&out, text); err != nil {
			t.Fatal(err)
		}
		shown := strings.TrimSuffix(out.String(), "\n")
		if i := strings.IndexFunc(shown, unicode.IsControl); i >= 0 {
			t.Errorf("%q has a control character", shown)
		}
		var got string
		if err := json.Unmarshal([]byte(shown), &got); err != nil {
			t.Fatal(err)
		}
		// Each byte that isn't UTF-8 becomes a replacement character.
		if want := string([]rune(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New("second \x1b[0m"))
	if got, want := oneLine(err), `first; second \x1b[0m`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPodFlags_Pod(t *testing.T) {
	flags := podFlags{namespace: "shop"}
	for arg, want := range map[string]string{"web": "shop/web", "other/web": "other/web", "pod/web": "shop/web"} {
		got, err := flags.pod(arg)
		if err != nil || got.String() != want {
			t.Errorf("%q: got %v, %v, want %s", arg, got, err, want)
		}
	}
	for _, arg := range []string{"", "/", "a/", "/b", "a/b/c"} {
		if got, err := flags.pod(arg); err == nil {
			t.Errorf("%q: got %v, want an error", arg, got)
		}
	}
}

func TestConnection_Path(t *testing.T) {
	t.Setenv("STATUSSTORE_SOCKET", "")
	t.Setenv("STATUSSTORE_DATA_DIR", "")
	steps := []struct {
		name string
		set  func(c *connection)
		want string
	}{
		{"default", func(*connection) {}, "/run/statusstore/statusstore.sock"},
		{"directory in the environment", func(*connection) { t.Setenv("STATUSSTORE_DATA_DIR", "/d") }, "/d/statusstore.sock"},
		{"socket in the environment", func(*connection) { t.Setenv("STATUSSTORE_SOCKET", "/e") }, "/e"},
		{"--data-dir", func(c *connection) { c.dataDir = "/f" }, "/f/statusstore.sock"},
		{"--socket", func(c *connection) { c.socket = "/s" }, "/s"},
	}
	// Each wins over those before it.
	var c connection
	for _, step := range steps {
		step.set(&c)
		if got := c.path(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
}

func TestFindContainer(t *testing.T) {
	pod := &v1.Pod{Status: v1.PodStatus{
		InitContainerStatuses:      []v1.ContainerStatus{{Name: "setup", ContainerID: "containerd://c0"}},
		ContainerStatuses:          []v1.ContainerStatus{{Name: "app", ContainerID: "containerd://c1"}, {Name: "late"}},
		EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "debug", ContainerID: "containerd://c2"}},
	}}
	tests := []struct{ wanted, want, err string }{
		{"app", "containerd://c1", ""},
		{"setup", "containerd://c0", ""},
		{"containerd://c2", "containerd://c2", ""},
		{"late", "", "has no ID"},
		{"nope", "", "only app, late, setup, debug"},
		{"containerd://c9", "", "no container with ID"},
		{"", "", "no container"},
	}
	for _, tt := range tests {
		got, err := findContainer(pod, tt.wanted)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: got %q, %v, want %q, %q", tt.wanted, got, err, tt.want, tt.err)
		}
	}
	if _, err := findContainer(&v1.Pod{}, "app"); err == nil {
		t.Error("a status without containers: got no error")
	}
}

func TestAPIServer(t *testing.T) {
	now := time.Now()
	at := new(now.Add(-time.Minute))
	tests := []struct {
		name   string
		status httpapi.Status
		want   string
	}{
		{"none", httpapi.Status{}, "none, nothing is sent"},
		{"not yet", httpapi.Status{Syncing: true}, "not reached yet"},
		{"down from the start", httpapi.Status{Syncing: true, LastSyncError: "refused", LastSyncErrorTime: at, ServerFailing: true}, "not reached yet, last error 60s ago: refused"},
		{"fine", httpapi.Status{Syncing: true, LiveSynced: true}, "ok"},
		{"down now", httpapi.Status{Syncing: true, LiveSynced: true, LastSyncError: "refused", LastSyncErrorTime: at, ServerFailing: true}, "failing: refused"},
		{"fine again", httpapi.Status{Syncing: true, LiveSynced: true, LastSyncError: "refused", LastSyncErrorTime: at}, "ok, last error 60s ago: refused"},
	}
	for _, tt := range tests {
		if got := apiServer(tt.status, now); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestNewLogger_ControlCharacters: logs are looked at on terminals, in either format.
func TestNewLogger_ControlCharacters(t *testing.T) {
	for _, message := range []string{"a\x7fb\u009b31mc\u202ed\u2028e\x1bf\U000e0001g\xffh", "\x7f", "a\x7fb", "a\u009bb", "a\u2066b", "a\\\x7f"} {
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			newLogger(&out, format, "info").Warn(message, "err", errors.New(message), "pod", slog.GroupValue(slog.String("x", message)), message, 1)
			line := out.String()
			if i := strings.IndexFunc(line, func(r rune) bool { return r != '\n' && isUnsafe(r) }); i >= 0 || strings.Count(line, "\n") != 1 || !utf8.ValidString(line) {
				t.Errorf("%s: got %q", format, line)
			}
			if format == "json" {
				var got struct{ Err string }
				if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Err != strings.ToValidUTF8(message, "\ufffd") {
					t.Errorf("got %q, %v", got.Err, err)
				}
			}
		}
	}
}

// TestPrintRawJSON_ControlCharacters: what the agent sent is not trusted to be UTF-8.
func TestPrintRawJSON_ControlCharacters(t *testing.T) {
	for _, text := range []string{"a\u009bb", "a\x7fb", "a\u202eb", "a\x9bb", "a\xffb\x7f"} {
		var out bytes.Buffer
		if err := printRawJSON(&out, []byte(`{"message":"`+text+`"}`)); err != nil {
			t.Fatal(err)
		}
		shown := out.String()
		if i := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && isUnsafe(r) }); i >= 0 || !utf8.ValidString(shown) {
			t.Errorf("%q: shown raw: %q", text, shown)
		}
	}
}
