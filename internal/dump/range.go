// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// checkRange refuses a range that is not in the journal, rather than print nothing,
// and says if retention took events of it.
func (s *session) checkRange(ctx context.Context, want filter) error {
	head := s.Head()
	if first := max(want.from, want.since.sequence); first > head {
		return fmt.Errorf("%s: sequence %d is above the head %d", s.name, first, head)
	}
	for _, p := range []point{want.since, want.until} {
		if p.epoch == 0 {
			continue
		}
		if _, err := s.startOf(ctx, p.epoch); err != nil {
			return err
		}
	}
	return s.noteTrimmed(ctx, want)
}

// startOf is the first event of an epoch that is kept.
func (s *session) startOf(ctx context.Context, epoch journal.Epoch) (journal.Sequence, error) {
	var first journal.Sequence
	keep := func(r *scan.Record) bool { return r.Epoch >= epoch }
	err := s.records(ctx, scan.Options{Keep: keep}, ignore, func(r *scan.Record) bool {
		if r.Epoch == epoch {
			first = r.Sequence
		}
		return false
	})
	if err == nil && first == 0 {
		var kept string
		if kept, err = s.keptEpochs(ctx); err == nil {
			err = fmt.Errorf("%s: no event of epoch %d is kept; the journal has %s", s.name, epoch, kept)
		}
	}
	return first, err
}

// keptEpochs names those of which events are kept, such as "epochs 3 to 7, 9".
func (s *session) keptEpochs(ctx context.Context) (string, error) {
	type span struct{ first, last journal.Epoch }
	var spans []span
	err := s.records(ctx, scan.Options{}, ignore, func(r *scan.Record) bool {
		switch n := len(spans); {
		case n > 0 && r.Epoch <= spans[n-1].last:
		case n > 0 && r.Epoch == spans[n-1].last+1:
			spans[n-1].last = r.Epoch
		default:
			spans = append(spans, span{r.Epoch, r.Epoch})
		}
		return true
	})
	switch {
	case err != nil:
		return "", err
	case len(spans) == 0:
		return "no events", nil
	case len(spans) == 1 && spans[0].first == spans[0].last:
		return fmt.Sprintf("epoch %d only", spans[0].first), nil
	}
	names := make([]string, len(spans))
	for i, p := range spans {
		names[i] = fmt.Sprint(p.first)
		if p.last > p.first {
			names[i] = fmt.Sprintf("%d to %d", p.first, p.last)
		}
	}
	return "epochs " + strings.Join(names, ", "), nil
}

// noteTrimmed says, where a range was asked for that begins or ends in history of
// which retention took the most, where that ends. Who asks for no range is shown
// what there is.
func (s *session) noteTrimmed(ctx context.Context, want filter) error {
	horizon, err := s.Horizon()
	if err != nil || horizon == 0 {
		return nil // reported by whoever needs the figures
	}
	// The first event from which on all are there.
	seq, epoch, at, err := s.firstFrom(ctx, horizon+1)
	if err != nil {
		return err
	}
	in := func(p point) bool {
		return p.sequence != 0 && p.sequence < seq || !p.time.IsZero() && (at.IsZero() || p.time.Before(at)) || p.epoch != 0 && p.epoch < epoch
	}
	asked := in(want.since) || in(want.until) || want.from != 0 && want.from < seq || want.to != 0 && want.to < seq
	if p := want.since.epoch; !asked && p != 0 && p == epoch {
		start, err := s.startOf(ctx, p)
		if err != nil {
			return err
		}
		asked = start < seq
	}
	if asked {
		before := fmt.Sprintf("sequence %d", seq)
		if !at.IsZero() {
			before += " (" + s.clock.format(at) + ")"
		}
		s.damage.note("events before %s were trimmed by retention and are not in the file, but for each pod's newest and starts of the agent", before)
	}
	return nil
}

// firstFrom finds the first event from a sequence on. Without one, the sequence is
// what was asked for.
func (s *session) firstFrom(ctx context.Context, from journal.Sequence) (seq journal.Sequence, epoch journal.Epoch, at time.Time, err error) {
	seq = from
	err = s.records(ctx, scan.Options{From: from}, ignore, func(r *scan.Record) bool {
		seq, epoch, at = r.Sequence, r.Epoch, r.Time()
		return false
	})
	return seq, epoch, at, err
}

// ignore is for a look at the journal before it is read as a whole, which reports.
func ignore(error) {}
