// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"

	"github.com/statusstore/statusstore/journal"
)

// Options select records.
type Options struct {
	From journal.Sequence // first; 0 is 1
	To   journal.Sequence // last; 0 is the head
	// Keep, if set, drops records early. It is called from several goroutines at
	// once, in any order, and must not keep its argument.
	Keep func(*Record) bool
	// Pods, if set, has what counting needs filled in, of records that are kept.
	Pods *Pods
}

// Place is where another reader may go on.
type Place struct {
	Sequence journal.Sequence // next
	Before   int64            // Nanos of the event before it; 0 if there is none
}

// Scan visits the records that are kept, in order, until visit returns false.
// With ErrUnsound all before the returned place were visited and nothing from it
// on. Keys that are not a journal's set Foreign.
func (s *File) Scan(ctx context.Context, o Options, visit func(*Record) bool) (next Place, err error) {
	o.From = max(o.From, 1)
	if o.To == 0 || o.To > s.Head.Sequence {
		o.To = s.Head.Sequence
	}
	r := &run{file: s, options: o, next: Place{Sequence: o.From}}
	if r.line, err = s.line(&r.options); err != nil {
		return r.next, err
	}
	defer func() {
		r.line.stop()
		next = r.next
	}()
	defer faults(&err)() // what visit reads is mapped
	return r.next, r.all(ctx, visit)
}

// run is one scan.
type run struct {
	file    *File
	options Options
	next    Place // all before it was visited
	line    *line
}

func (r *run) all(ctx context.Context, visit func(*Record) bool) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := r.line.next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		goOn, err := r.deliver(b, visit)
		if err != nil || !goOn {
			return err
		}
		if b.end {
			break
		}
		r.line.giveBack(b)
	}
	if r.file.missing(r.next.Sequence, r.options.To+1) {
		return unsound("events %d to %d are missing", r.next.Sequence, r.options.To)
	}
	r.next.Sequence = max(r.next.Sequence, r.options.To+1)
	return nil
}

// missing says whether events from one sequence up to before another should be
// there: gaps up to the horizon are normal.
func (s *File) missing(from, before journal.Sequence) bool {
	return max(from, s.Head.Horizon+1) < before
}

// deliver visits a batch's records, those before its end or its damage.
func (r *run) deliver(b *batch, visit func(*Record) bool) (goOn bool, err error) {
	r.file.Foreign = r.file.Foreign || b.foreign
	if b.first != 0 {
		if b.first < r.next.Sequence || r.file.missing(r.next.Sequence, b.first) {
			return false, unsound("sequence %d follows %d", b.first, r.next.Sequence-1)
		}
		if len(b.records) > 0 && b.records[0].Sequence == b.first {
			b.records[0].Before = r.next.Before
		}
		for i := range b.records {
			r.next.Sequence = b.records[i].Sequence
			if !visit(&b.records[i]) {
				return false, nil
			}
		}
		r.next = Place{b.last + 1, b.nanos}
	}
	return b.err == nil, b.err
}
