// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/statusstore/statusstore/journal"
)

// TestSharedEvents are computed once for all who are near the head.
func TestSharedEvents(t *testing.T) {
	var s sharedEvents
	var pods, lines atomic.Int64
	look := func(sequence, head journal.Sequence, size int) []byte {
		e := s.at(sequence, head)
		if _, err := e.podOr(func() (*v1.Pod, error) { pods.Add(1); return &v1.Pod{}, nil }); err != nil {
			t.Error(err)
		}
		line, err := e.lineOr(sharedForm{watch.Modified, formatJSON}, func() ([]byte, error) {
			lines.Add(1)
			return bytes.Repeat([]byte{'x'}, size), nil
		})
		if err != nil || len(line) != size {
			t.Errorf("got %d bytes, %v, want %d", len(line), err, size)
		}
		return line
	}
	wants := func(what string, wantPods, wantLines int64) {
		t.Helper()
		if gotPods, gotLines := pods.Swap(0), lines.Swap(0); gotPods != wantPods || gotLines != wantLines {
			t.Errorf("%s: made %d pods and %d lines, want %d and %d", what, gotPods, gotLines, wantPods, wantLines)
		}
	}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { look(2000, 2000, 10) })
	}
	group.Wait()
	wants("the newest, for 100", 1, 1)
	look(2000-sharedEventCount, 2000, 10)
	look(2000-sharedEventCount, 2000, 10)
	wants("one that is too far behind, for 2", 2, 2)
	look(2001, 2001, sharedLineBytes+1)
	look(2001, 2001, sharedLineBytes+1)
	wants("a large one, for 2", 1, 2)
	for sequence := journal.Sequence(3000); sequence < 5000; sequence++ {
		look(sequence, sequence, 1)
	}
	pods.Store(0)
	lines.Store(0)
	if got := len(s.events); got != sharedEventCount {
		t.Errorf("%d events are kept, want %d", got, sharedEventCount)
	}
	look(2001, 2001, 1)
	wants("one that was pushed out", 1, 1)

	fails := errors.New("no")
	if _, err := s.at(6000, 6000).lineOr(sharedForm{}, func() ([]byte, error) { return nil, fails }); !errors.Is(err, fails) {
		t.Errorf("got %v, want %v", err, fails)
	}
}
