// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"runtime"

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

// batchBytes is how much of leaf pages a worker gets at a time: little at first,
// so that the first record comes at once; as much as stays in a core's cache later.
var batchBytes = []int{4 << 10, 16 << 10, 64 << 10, 192 << 10}

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
	defer func() {
		for _, b := range r.flying {
			<-b.done
		}
		next = r.next
	}()
	defer faults(&err)() // what visit reads is mapped
	return r.next, r.all(ctx, visit)
}

func (r *run) all(ctx context.Context, visit func(*Record) bool) error {
	if err := r.begin(); err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.file.release()
		r.launch()
		if len(r.flying) == 0 {
			break
		}
		b := r.flying[0]
		<-b.done
		r.flying = r.flying[1:]
		goOn, err := r.deliver(b, visit)
		if err != nil || !goOn {
			return err
		}
		r.spare = append(r.spare, b)
	}
	if r.treeErr != nil {
		return r.treeErr
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

// run is one scan.
type run struct {
	file    *File
	options Options
	next    Place // all before it was visited
	tree    leafIterator
	treeErr error // what ended the tree early; told behind all before it
	ended   bool
	round   int
	flying  []*batch // in order
	spare   []*batch
}

// begin prepares the way down to the first record.
func (r *run) begin() error {
	b := r.file.buckets["events"]
	if b.root == 0 { // all events fit into the root bucket's page
		one := r.batch()
		one.inline = b.inline
		r.start(one)
		r.ended = true
		return nil
	}
	tree, err := r.file.leaves(b.root, r.options.From)
	r.tree = tree
	return err
}

// launch keeps as many batches in flight as there are processors, and one more.
func (r *run) launch() {
	for !r.ended && len(r.flying) <= runtime.GOMAXPROCS(0) {
		b := r.batch()
		want := max(batchBytes[min(r.round, len(batchBytes)-1)]/r.file.PageSize, 1)
		r.round++
		for len(b.pages) < want {
			id, ok, err := r.tree.next()
			if err != nil {
				r.treeErr = err
			}
			if err != nil || !ok {
				r.ended = true
				break
			}
			b.pages = append(b.pages, id)
		}
		if len(b.pages) > 0 {
			r.start(b)
		}
	}
}

func (r *run) start(b *batch) {
	r.flying = append(r.flying, b)
	go func() {
		defer close(b.done)
		b.err = b.read(r.file, &r.options)
	}()
}

func (r *run) batch() *batch {
	b := &batch{}
	if n := len(r.spare); n > 0 {
		b, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	b.done = make(chan struct{})
	b.inline, b.err, b.foreign, b.end = nil, nil, false, false
	b.pages, b.records, b.first, b.last, b.nanos = b.pages[:0], b.records[:0], 0, 0, 0
	return b
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
	if b.err != nil {
		return false, b.err
	}
	if b.end {
		r.ended, r.treeErr = true, nil
		for _, later := range r.flying {
			<-later.done
		}
		r.flying = nil
	}
	return true, nil
}
