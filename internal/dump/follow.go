// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/statusstore/statusstore/journal"
)

// followIdle is how long nothing must have come, once the time in --until has
// passed, before it is taken that all up to it has come.
const followIdle = time.Second

func (f *eventsFlags) runFollow(ctx context.Context, std *streams, args []string, want filter) error {
	out, err := f.prepare(std)
	if err != nil {
		return err
	}
	where, err := placeOf(args, f.socket)
	if err != nil {
		return err
	}
	if where.socket == "" {
		return usagef("--follow needs a running agent: --socket PATH")
	}
	if want.until.epoch != 0 {
		return usagef("--follow with --until %s%d: an epoch ends with the agent, and so does what is followed; leave out one of them", epochPrefix, want.until.epoch)
	}
	d := &damage{stderr: std.err, flush: out.flush, source: where.socket, path: where.socket, redact: newRedactor(f.redacted)}
	a := newAgent(where.socket)
	if err := a.hasEpoch(ctx, want.since.epoch); err != nil {
		return err
	}
	from := max(want.from, want.since.sequence)
	if f.changes {
		from = 0
	}
	events := a.follow(ctx, from, want, d)
	if err := f.print(out, d, f.clock(), want, flushing(out, events)); err != nil {
		return err
	}
	return d.result()
}

// flushing brings each event out before it waits for the next.
func flushing(out *output, events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || out.flush() != nil {
				return
			}
		}
	}
}

// hasEpoch refuses an epoch that is not yet.
func (a *agent) hasEpoch(ctx context.Context, epoch journal.Epoch) error {
	if epoch == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errors.New("the agent takes too long"))
	defer cancel()
	resp, err := a.get(ctx, "/statusstore/v1/status", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var status struct {
		Epoch journal.Epoch `json:"epoch"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRecordsBytes)).Decode(&status); err != nil {
		return fmt.Errorf("status from socket %s: %w", a.socket, err)
	}
	if epoch > status.Epoch {
		return fmt.Errorf("%s: there is no epoch %d yet: the agent is in epoch %d", a.socket, epoch, status.Epoch)
	}
	return nil
}

// follow yields the events of the agent from a sequence on (0: from the oldest
// that is kept), as they come, until ctx ends or the end of what is wanted has
// passed. Damaged ones go to d.
func (a *agent) follow(ctx context.Context, from journal.Sequence, want filter, d *damage) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		query := url.Values{"follow": {"true"}}
		if from > 0 {
			query.Set("from", strconv.FormatUint(uint64(from), 10))
		}
		resp, err := a.get(ctx, "/statusstore/v1/events", query)
		if err != nil {
			if ctx.Err() == nil {
				yield(Event{}, err)
			}
			return
		}
		defer resp.Body.Close()
		f := newFollowed(from, want, d, resp.Header.Get("Statusstore-Sequence"))
		defer f.end(cancel)()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(make([]byte, 0, 64<<10), maxLine)
		for !f.passed() && f.next(lines) {
			if len(lines.Bytes()) == 0 {
				continue
			}
			var line Event
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				yield(Event{}, fmt.Errorf("events from socket %s: %w", a.socket, err))
				return
			}
			if f.beyond(&line) {
				return
			}
			f.see(&line)
			if line.Error != "" {
				d.report(fmt.Errorf("sequence %d: %s", line.Sequence, line.Error))
				if line.Kind == "" {
					continue
				}
			}
			if !yield(line, nil) {
				return
			}
		}
		if ctx.Err() != nil || f.passed() {
			return
		}
		err = lines.Err()
		if err == nil {
			err = errors.New("the agent ended the stream")
		}
		yield(Event{}, fmt.Errorf("events from socket %s: %w", a.socket, err))
	}
}

// followed knows how far a stream is, and whether it has passed what is wanted.
type followed struct {
	*damage
	want  filter
	last  journal.Sequence // of what is wanted; 0 is no end
	head  journal.Sequence // the journal's when the stream began; 0 is not known
	seen  journal.Sequence // all up to here has come, or will not
	asked bool             // for a beginning, which may be gone
	old   bool             // what is wanted ended before the stream began
	timer *time.Timer      // ends a stream on which nothing more is to come; nil without --until
}

func newFollowed(from journal.Sequence, want filter, d *damage, head string) *followed {
	f := &followed{damage: d, want: want, seen: max(from, 1) - 1, asked: want.from != 0 || want.since != point{}}
	for _, end := range []journal.Sequence{want.to, want.until.sequence} {
		if end != 0 && (f.last == 0 || end < f.last) {
			f.last = end
		}
	}
	if n, err := strconv.ParseUint(head, 10, 64); err == nil {
		f.head = journal.Sequence(n)
		f.old = !want.until.time.IsZero() && !want.until.time.After(time.Now())
	}
	return f
}

// end has the stream ended by its time.
func (f *followed) end(cancel func()) (stop func()) {
	if f.want.until.time.IsZero() {
		return func() {}
	}
	f.timer = time.AfterFunc(math.MaxInt64, cancel)
	return func() { f.timer.Stop() }
}

// next waits for a line. The clock runs only while nothing is there to be read,
// and not before all that was there at the beginning has come.
func (f *followed) next(lines *bufio.Scanner) bool {
	if f.timer != nil && f.seen >= f.head {
		f.timer.Reset(max(time.Until(f.want.until.time), 0) + followIdle)
		defer f.timer.Stop()
	}
	return lines.Scan()
}

// beyond reports whether the line is of an event after the end.
func (f *followed) beyond(line *Event) bool {
	until := f.want.until.time
	return f.last != 0 && line.Sequence > f.last || !until.IsZero() && line.Time.After(until)
}

// passed reports whether the end has come.
func (f *followed) passed() bool {
	return f.last != 0 && f.seen >= f.last || f.old && f.seen >= f.head
}

// see notes how far the stream is, and says once that events are missing which may
// have been wanted. Those that go while they are followed are told by the agent.
func (f *followed) see(line *Event) {
	since := f.want.since
	if line.Error == "" && f.asked && line.Sequence > f.seen+1 && line.Sequence > since.sequence && line.Sequence > f.want.from &&
		line.Epoch >= since.epoch && !line.Time.Before(since.time) {
		f.note("events %d to %d were trimmed by retention and are not in the journal; others after them may be, too", f.seen+1, line.Sequence-1)
		f.asked = false
	}
	f.asked = f.asked && line.Kind != ""
	f.seen = max(f.seen, line.Sequence)
}
