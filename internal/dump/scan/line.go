// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"runtime"
	"sync"
)

// batchBytes are the sizes of the first batches and of all later ones: the first
// row is there at once, and later a batch is worth handing to another processor.
var batchBytes = []int{4 << 10, 16 << 10, 64 << 10, 512 << 10}

// line hands out batches of leaf pages to be read, and gives them back in order.
// Whoever wants the next one reads another meanwhile instead of sleeping: to put
// processors to sleep and wake them up takes longer than to read a batch.
type line struct {
	file    *File
	options *Options
	most    int // batches in the line
	helpers sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond // a batch was read, or there is room for one, or it ended
	tree    leafIterator
	treeErr error // what ended the tree early; told behind all before it
	ended   bool  // no more pages
	stopped bool
	begun   int
	batches []*batch // in order
	spare   []*batch
}

// line begins to read. Its user must stop it.
func (s *File) line(o *Options) (*line, error) {
	l := &line{file: s, options: o, most: 2 * runtime.GOMAXPROCS(0)}
	l.changed.L = &l.mu
	b := s.buckets["events"]
	if b.root == 0 { // all events fit into the root bucket's page
		one := &batch{inline: b.inline, done: true}
		one.err = one.read(s, o)
		l.batches, l.ended = []*batch{one}, true
		return l, nil
	}
	var err error
	if l.tree, err = s.leaves(b.root, o.From); err != nil {
		return nil, err
	}
	for range runtime.GOMAXPROCS(0) - 1 {
		l.helpers.Go(l.help)
	}
	return l, nil
}

// stop ends the helpers.
func (l *line) stop() {
	l.mu.Lock()
	l.stopped = true
	l.changed.Broadcast()
	l.mu.Unlock()
	l.helpers.Wait()
}

func (l *line) help() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.stopped && !l.ended {
		if !l.readOne() {
			l.changed.Wait()
		}
	}
}

// next is the next batch in order; nil behind the last one.
func (l *line) next() (*batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case len(l.batches) > 0 && l.batches[0].done:
			b := l.batches[0]
			l.batches = l.batches[1:]
			l.changed.Broadcast()
			return b, nil
		case l.readOne():
		case len(l.batches) == 0:
			return nil, l.treeErr
		default:
			l.changed.Wait()
		}
	}
}

// giveBack has a batch used again. What was in it is gone.
func (l *line) giveBack(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = append(l.spare, b)
}

// readOne reads a batch, unless there are enough in the line, or no more pages.
// It lets go of the lock meanwhile.
func (l *line) readOne() bool {
	l.file.release()
	if len(l.batches) >= l.most {
		return false
	}
	b := l.take()
	if b == nil {
		return false
	}
	l.batches = append(l.batches, b)
	l.mu.Unlock()
	b.err = b.read(l.file, l.options)
	l.mu.Lock()
	b.done = true
	l.changed.Broadcast()
	return true
}

// take gives the next pages of the tree to a batch; nil if there are none.
func (l *line) take() *batch {
	if l.ended {
		return nil
	}
	b := &batch{}
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
		b.reset()
	}
	want := max(batchBytes[min(l.begun, len(batchBytes)-1)]/l.file.PageSize, 1)
	l.begun++
	for len(b.pages) < want && !l.ended {
		id, ok, err := l.tree.next()
		if l.treeErr = err; err != nil || !ok {
			l.ended = true
			break
		}
		b.pages = append(b.pages, id)
	}
	if len(b.pages) == 0 {
		return nil
	}
	return b
}
