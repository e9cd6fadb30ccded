// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/statusstore/statusstore/internal/logkey"
)

// writePiece is how much must get through within one WriteTimeout. It is small
// against a socket's buffer, so a slow reader is served and only a stuck one is
// cut off.
const writePiece = 16 << 10

// around is what every request goes through: deadlines, panics, errors, metrics.
func (a *api) around(pattern string, h handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		w := &answer{ResponseWriter: out, control: http.NewResponseController(out), timeout: a.WriteTimeout}
		defer func() {
			if p := recover(); p != nil {
				a.Logger.Error("request panics", logkey.Path, pattern, logkey.Err, p, logkey.Stack, string(debug.Stack()))
				if w.code == 0 {
					writeError(w, fmt.Errorf("internal error"))
				} else {
					defer panic(http.ErrAbortHandler) // the client must not take the rest for complete
				}
			}
			a.Metrics.observeRequest(pattern, r.Method, w.code, time.Since(begin))
		}()
		w.Header().Set("Cache-Control", "no-cache, private")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch err := h(w, r); {
		case err == nil:
		case w.code != 0:
			// Too late to tell the client anything but that it is not complete.
			a.Logger.Debug("answer breaks off", logkey.Path, pattern, logkey.Err, err)
			panic(http.ErrAbortHandler)
		default:
			writeError(w, err)
		}
	})
}

// answer sets a deadline before each write and remembers the code.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	code    int
}

func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answer) WriteHeader(code int) {
	w.extend()
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *answer) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	written := 0
	for {
		w.extend()
		n, err := w.ResponseWriter.Write(b[:min(len(b), writePiece)])
		written += n
		b = b[n:]
		if err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// Flush sends what is buffered.
func (w *answer) Flush() error {
	w.extend()
	return w.control.Flush()
}

// extend is best effort: a writer without deadlines, as in tests, can't be stuck.
func (w *answer) extend() { _ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) }

// flush sends what a handler of a stream has written so far.
func flush(w http.ResponseWriter) error {
	if a, ok := w.(*answer); ok {
		return a.Flush()
	}
	return http.NewResponseController(w).Flush()
}

// commit calls the manager with a bound on the wait for the disk, and notes how
// long that took. The call says whether it changed anything.
func (a *api) commit(r *http.Request, call func(context.Context) (changed bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(r.Context(), a.CommitTimeout, errSlowDisk)
	defer cancel()
	begin := time.Now()
	changed, err := call(ctx)
	a.Metrics.Written(changed, err, time.Since(begin))
	return err
}

// streamContext ends with the request, and with Options.Stopping.
func (a *api) streamContext(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	if a.Stopping != nil {
		go func() {
			select {
			case <-a.Stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// writeJSON encodes first: an error can still be told then.
func writeJSON(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
	}
	writeBytes(w, code, contentJSON, append(data, '\n'))
}

func writeBytes(w http.ResponseWriter, code int, contentType string, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client is gone
}
