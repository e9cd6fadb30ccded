// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"log/slog"
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
		return slog.New(slog.NewJSONHandler(escapingWriter{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// escapingWriter gets a line of JSON at a time. Messages of the API server and of
// containers are in it, and logs are looked at on terminals.
type escapingWriter struct{ w io.Writer }

func (e escapingWriter) Write(line []byte) (int, error) {
	if _, err := e.w.Write(escapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
