// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: what a program writes to tty is what a person
// would see.
type terminal struct {
	t    *testing.T
	tty  *os.File
	seen chan string
}

func openTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, tty: tty, seen: make(chan string, 1)}
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, master) // ends with EIO when nobody has the terminal open
		term.seen <- all.String()
	}()
	return term
}

// text is all that was written.
func (term *terminal) text() string {
	term.t.Helper()
	term.tty.Close()
	return strings.ReplaceAll(<-term.seen, "\r\n", "\n") // the terminal's own line ends
}

// screen is what a line is left with after returns to its begin and erasures.
func screen(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = line[strings.LastIndex(line, "\r\x1b[K")+1:]
		lines[i] = strings.TrimPrefix(lines[i], "\x1b[K")
	}
	return strings.Join(lines, "\n")
}

// tellAll has progress told of work that is short.
func tellAll(t *testing.T) {
	after, every := progressAfter, progressEvery
	progressAfter, progressEvery = 0, time.Nanosecond
	t.Cleanup(func() { progressAfter, progressEvery = after, every })
}

// TestTerminal_Progress: on a terminal, standard error tells how far the work is,
// and nothing of that is left on it at the end. Standard output is as without.
func TestTerminal_Progress(t *testing.T) {
	tellAll(t)
	const events = progressEvents + 500
	path := build(t, func(w *writer) { w.many(events, 50) })
	damaged := build(t, func(w *writer) { w.many(events, 50) })
	flip(t, damaged, events-5)
	newer := filepath.Join(t.TempDir(), "salvaged.db")
	tests := []struct {
		name string
		args []string
		code int
		want string // of progress
		left string // on the terminal
	}{
		{"stats", []string{"stats", path}, exitOK, "events read: 4096 of 4596 (89%)", ""},
		{"timeline", []string{"timeline", "--out", filepath.Join(t.TempDir(), "page.html"), path}, exitOK, "events read: 4096 of 4596 (89%)", ""},
		{"export", []string{"export", path}, exitOK, "4096 of 4596 (89%)", ""},
		{"verify", []string{"verify", path}, exitOK, "verify: bytes: ", ""},
		{"salvage", []string{"salvage", path, newer}, exitOK, "salvage: bytes: ", ""},
		{"damage", []string{"stats", damaged}, exitFailed, "events read: 4096 of 4596 (89%)", "checksum does not match\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			term := openTerminal(t, 100)
			var out bytes.Buffer
			if code := Main(tt.args, nil, &out, term.tty); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			text := term.text()
			if !strings.Contains(text, "\r\x1b[K") || !strings.Contains(text, tt.want) {
				t.Errorf("no progress on the terminal, want %q: %q", tt.want, text)
			}
			left := screen(text)
			if tt.left == "" && left != "" || !strings.Contains(left, tt.left) || strings.Contains(left, tt.want) {
				t.Errorf("left on the terminal: %q, want %q", left, tt.left)
			}
			if out.Len() == 0 || strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), tt.want) {
				t.Errorf("standard output has none, or progress: %.300q", out.String())
			}
		})
	}
	t.Run("not in a pipe", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		code := Main([]string{"stats", path}, nil, io.Discard, w)
		w.Close()
		if text, err := io.ReadAll(r); code != exitOK || err != nil || len(text) != 0 {
			t.Errorf("exit code %d, %v, on standard error %q", code, err, text)
		}
	})
}

// TestTerminal_Colour: colours are for a terminal, and for who wants them.
func TestTerminal_Colour(t *testing.T) {
	path := night(t)
	for _, args := range [][]string{{"-p", path}, {"diff", path, "2026-01-31T02:45", "2026-01-31T03:10"}, {"timeline", path}} {
		for _, tt := range []struct {
			name, key, value string
			want             bool
		}{
			{"as it is", "NO_COLOR", "", true},
			{"NO_COLOR", "NO_COLOR", "1", false},
			{"a terminal without", "TERM", "dumb", false},
		} {
			t.Run(args[0]+" "+tt.name, func(t *testing.T) {
				t.Setenv("TERM", "xterm")
				t.Setenv("NO_COLOR", "")
				t.Setenv(tt.key, tt.value)
				term := openTerminal(t, 80)
				if code := Main(args, nil, term.tty, io.Discard); code != exitOK {
					t.Fatalf("exit code %d", code)
				}
				text := term.text()
				if text == "" || strings.Contains(text, "\x1b[") != tt.want {
					t.Errorf("colours: want %v: %.500q", tt.want, text)
				}
			})
		}
		t.Run(args[0]+" in a pipe", func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", "")
			if got := run(args...); got.code != exitOK || got.out == "" || strings.Contains(got.out, "\x1b") {
				t.Errorf("exit code %d, %.500q", got.code, got.out)
			}
		})
	}
}
