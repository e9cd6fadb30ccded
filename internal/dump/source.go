// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"iter"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// source is a journal that is open for reading, wherever it came from. A sound
// one is read by the fast scanner; what is not sound, and what needs more than
// events, by the journal's own reader, which is opened when it is needed.
type source struct {
	fast *scan.File // nil if the file is not sound as far as opening it tells
	full *journal.Reader
	name string   // what the user calls it
	path string   // what was opened
	copy *os.File // the unlinked copy; nil for a file
	from *agent   // whom it was fetched from; nil otherwise
}

// openSource opens a path. The error is the journal's own.
func openSource(path, name string) (*source, error) {
	fast, err := scan.Open(path)
	if err == nil {
		return &source{fast: fast, name: name, path: path}, nil
	}
	full, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		return nil, err
	}
	return &source{full: full, name: name, path: path}, nil
}

// reader is the journal's own reader.
func (s *source) reader() (*journal.Reader, error) {
	if s.full == nil {
		full, err := journal.OpenReadOnly(s.path, journal.ReadOptions{})
		if err != nil {
			return nil, err
		}
		s.full = full
	}
	return s.full, nil
}

func (s *source) Close() error {
	var errs []error
	if s.fast != nil {
		errs = append(errs, s.fast.Close())
	}
	if s.full != nil {
		errs = append(errs, s.full.Close())
	}
	if s.copy != nil {
		errs = append(errs, s.copy.Close())
	}
	return errors.Join(errs...)
}

// Info is what was written at creation.
func (s *source) Info() journal.Info {
	if s.full != nil {
		return s.full.Info()
	}
	return s.fast.Info
}

// Head is the highest committed sequence.
func (s *source) Head() journal.Sequence {
	if s.full != nil {
		return s.full.Head()
	}
	return s.fast.Head.Sequence
}

// Horizon is the sequence up to which gaps are trimmed history.
func (s *source) Horizon() (journal.Sequence, error) {
	if s.fast != nil {
		return s.fast.Head.Horizon, nil
	}
	stats, err := s.full.Stats()
	return stats.Horizon, err
}

// Acks are the acks by UID.
func (s *source) Acks() (map[types.UID]journal.Ack, error) {
	if s.fast != nil {
		if acks, err := s.fast.Acks(); err == nil {
			return acks, nil
		}
	}
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	return r.Acks()
}

// Newest yields each pod's newest event.
func (s *source) Newest() iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		r, err := s.reader()
		if err != nil {
			yield(journal.Event{}, err)
			return
		}
		r.Newest()(yield)
	}
}

// records visits events in order, those that are sound; the others go to report.
// Keep of the options is asked by either reader. It returns the cause if ctx ends
// before.
func (s *source) records(ctx context.Context, o scan.Options, report func(error), visit func(*scan.Record) bool) error {
	var before int64
	if s.fast != nil {
		next, err := s.fast.Scan(ctx, o, visit)
		if err == nil || !errors.Is(err, scan.ErrUnsound) {
			return err
		}
		o.From, before = next.Sequence, next.Before // from here on, the other one tells what is wrong
	}
	r, err := s.reader()
	if err != nil {
		report(err)
		return nil
	}
	for e, err := range r.Events(max(o.From, 1), o.To) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			report(err)
			continue
		}
		record := scan.Of(&e, &o)
		record.Before, before = before, record.Nanos
		if o.Keep != nil && !o.Keep(&record) {
			continue
		}
		if !visit(&record) {
			return nil
		}
	}
	return nil
}

// events yields what records visits.
func (s *source) events(ctx context.Context, o scan.Options, report func(error)) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		stopped := false
		err := s.records(ctx, o, report, func(r *scan.Record) bool {
			e, err := r.Event()
			if err != nil {
				report(err)
				return true
			}
			stopped = !yield(e, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(journal.Event{}, err)
		}
	}
}

// dated is an event with the time of the one before it, of whatever pod; zero if
// it is the first.
type dated struct {
	journal.Event
	before time.Time
}

// dated yields the events that keep wants. It is asked as Keep of the options is.
func (s *source) dated(ctx context.Context, report func(error), keep func(*scan.Record) bool) iter.Seq2[dated, error] {
	return func(yield func(dated, error) bool) {
		stopped := false
		err := s.records(ctx, scan.Options{Keep: keep}, report, func(r *scan.Record) bool {
			e, err := r.Event()
			if err != nil {
				report(err)
				return true
			}
			stopped = !yield(dated{e, r.TimeBefore()}, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(dated{}, err)
		}
	}
}

// foreign says whether keys or buckets that are not a journal's were met.
func (s *source) foreign() bool { return s.fast == nil || s.full != nil || s.fast.Foreign }
