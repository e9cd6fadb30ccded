// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log/slog"
	"strings"
)

// newLogger logs to w.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	options := &slog.HandlerOptions{}
	var l slog.Level
	// The flag allows only words that are levels.
	if err := l.UnmarshalText([]byte(level)); err == nil {
		options.Level = l
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(escapingWriter{w, escapeJSON}, options))
	}
	return slog.New(slog.NewTextHandler(escapingWriter{w, escapeLine}, options))
}

// escapingWriter gets a line at a time. Messages of the API server and of
// containers are in it, and logs are looked at on terminals.
type escapingWriter struct {
	w      io.Writer
	escape func(line []byte) []byte
}

func (e escapingWriter) Write(line []byte) (int, error) {
	if _, err := e.w.Write(e.escape(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// escapeLine escapes what slog leaves as it is in text without spaces.
func escapeLine(line []byte) []byte {
	text, ended := strings.CutSuffix(string(line), "\n")
	text = escape(text)
	if ended {
		text += "\n"
	}
	return []byte(text)
}
