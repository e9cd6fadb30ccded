// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statusstore/statusstore/journal"
)

// progress tells on standard error how far long work is: on a terminal only, and
// only after a moment. A nil progress tells nothing.
type progress struct {
	w     io.Writer
	began time.Time
	last  time.Time
	shown bool
}

// Short work tells nothing, and long work not all the time.
var (
	progressAfter = 500 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progressEvents: the clock is looked at once in so many.
const progressEvents = 4096

// newProgress is nil unless w is a terminal.
func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if _, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	now := time.Now()
	return &progress{w: w, began: now, last: now}
}

// step tells how much of the work is done. total 0 is not known.
func (p *progress) step(what string, done, total uint64) {
	if p == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.began) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	text := fmt.Sprintf("%s: %d", what, done)
	if total > 0 {
		text = fmt.Sprintf("%s: %d of %d (%d%%)", what, done, total, 100*min(done, total)/total)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", text)
}

// at is step for events, which are many.
func (p *progress) at(what string, seq, head journal.Sequence) {
	if p != nil && seq%progressEvents == 0 {
		p.step(what, uint64(seq), uint64(head))
	}
}

// bytes has a long call of the journal's tell how far it is.
func (p *progress) bytes(ctx context.Context, what string) context.Context {
	if p == nil {
		return ctx
	}
	return journal.WithProgress(ctx, func(done, total int64) { p.step(what+": bytes", uint64(done), uint64(total)) })
}

// clear takes the line away, so that other text may follow.
func (p *progress) clear() {
	if p != nil && p.shown {
		p.shown = false
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
