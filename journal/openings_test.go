// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestG7_RestartsPushNothingOut: a crash loop keeps the history of pods, and itself
// within bounds; every epoch that has events has its opened event.
func TestG7_RestartsPushNothingOut(t *testing.T) {
	const restarts = 3*maxOpenings + 20
	path := filepath.Join(fastDir(t), FileName)
	o := Options{Retention: Retention{MaxEvents: 60}}
	j, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	var want []Sequence
	for i := range restarts {
		if i%8 == 0 {
			want = append(want, mustAppend(t, j, set(types.UID(fmt.Sprint("pod-", i%3)), fmt.Sprint(i)))[0].Sequence)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if j, err = Open(path, o); err != nil {
			t.Fatal(err)
		}
	}
	defer j.Close()
	var got []Sequence
	opened, newest := map[Epoch]bool{}, Sequence(0)
	for _, e := range all(t, j) {
		if e.Kind == KindOpened {
			opened[e.Epoch], newest = true, e.Sequence
			continue
		}
		got = append(got, e.Sequence)
		if !opened[e.Epoch] {
			t.Errorf("event %d of epoch %d has no opened event", e.Sequence, e.Epoch)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("events of pods %v, want %v", got, want)
	}
	if limit := maxOpenings + len(want); len(opened) > limit || len(opened) < maxOpenings {
		t.Errorf("%d opened events, want %d to %d", len(opened), maxOpenings, limit)
	}
	if head, _ := j.Head(); newest != head || !slices.Contains(j.openings, head) {
		t.Errorf("the newest opened event is %d, the head %d", newest, head)
	}

	// Once the events have gone, so do the openings of their epochs.
	var batch []Event
	for i := range 100 {
		batch = append(batch, set(types.UID(fmt.Sprint("pod-", i%3)), "new"))
	}
	mustAppend(t, j, batch...)
	j = reopen(t, j)
	if n := len(j.openings); n != maxOpenings {
		t.Errorf("%d openings are listed", n)
	}
	if s, err := j.Stats(); err != nil || s.Events > 60+60/8+1+maxOpenings || s.Events < 60+maxOpenings {
		t.Errorf("%d events, %v; want what retention keeps and the openings", s.Events, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	verify(t, path)
	result, out := salvage(t, path)
	k := open(t, out, Options{})
	if len(k.openings) < maxOpenings || result.LostEvents != 0 {
		t.Errorf("salvage: %d openings, %+v", len(k.openings), result)
	}
}

// TestOpeningsOfEarlierReleases: what is not listed is history.
func TestOpeningsOfEarlierReleases(t *testing.T) {
	path, want := unpack(t, "v1-kinds")
	markOfOldRelease(t, path)
	j := open(t, path, Options{Node: goldenNode})
	if len(j.openings) != 1 || len(all(t, j)) != len(want.Events)+1 {
		t.Errorf("openings %v, %d events of %d", j.openings, len(all(t, j)), len(want.Events)+1)
	}
}
