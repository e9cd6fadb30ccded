// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestG7_HistoryIsBounded(t *testing.T) {
	const limit = 200
	j := openNew(t, Options{Retention: Retention{MaxEvents: limit}})
	quiet := mustAppend(t, j, set("quiet", "never changes"))[0]
	for i := range 3 * limit {
		var batch []Event
		for k := range 10 {
			batch = append(batch, set(types.UID(fmt.Sprint("busy-", k%7)), fmt.Sprint(i)))
		}
		mustAppend(t, j, batch...)
	}
	s, err := j.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Events > limit+limit/8+3 {
		t.Errorf("%d events are kept, the limit is %d", s.Events, limit)
	}
	events := all(t, j)
	if s.First != quiet.Sequence || events[0].Kind != KindOpened || events[1].Sequence != quiet.Sequence || uint64(len(events)) != s.Events {
		t.Errorf("the first of %d events is %d, want the quiet pod's %d", len(events), events[1].Sequence, quiet.Sequence)
	}
	// Once superseded, the spared event goes too.
	mustAppend(t, j, set("quiet", "changes"))
	if events = all(t, j); events[1].Sequence == quiet.Sequence {
		t.Error("a superseded event below the horizon stays")
	}
	if got := len(newest(t, reopen(t, j))); got != 8 {
		t.Errorf("%d pods after trimming", got)
	}
}

func newest(t *testing.T, j *Journal) map[types.UID]Event {
	t.Helper()
	out := map[types.UID]Event{}
	for e, err := range j.Newest() {
		if err != nil {
			t.Fatal(err)
		}
		out[e.UID] = e
	}
	return out
}

func TestG7_BytesAreBounded(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{MaxBytes: 64 << 10}})
	for i := range 200 {
		e := set("a", fmt.Sprint(i, strings.Repeat("x", 60)))
		mustAppend(t, j, e, e, e, e, e, e, e, e, e, e)
	}
	if s, _ := j.Stats(); s.EventBytes > 64<<10 {
		t.Errorf("%d bytes of records", s.EventBytes)
	}
}

// C46: the file stops growing once history is full.
func TestC46_FilePlateau(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{MaxEvents: 1000}})
	var sizes []int64
	batch := make([]Event, 50)
	for round := range 8 {
		for i := range 25 {
			for k := range batch {
				batch[k] = set(types.UID(fmt.Sprint(k)), fmt.Sprintf("%d/%d %s", round, i, strings.Repeat("status ", 60)))
			}
			mustAppend(t, j, batch...)
		}
		info, err := os.Stat(j.path)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, info.Size())
	}
	if sizes[len(sizes)-1] > sizes[2] {
		t.Errorf("the file still grows: %v", sizes)
	}
	if sizes[len(sizes)-1] > 10<<20 {
		t.Errorf("the file has %d bytes", sizes[len(sizes)-1])
	}
}

// C51: tombstones are bounded too, and a UID that was
// forgotten still gets no version twice.
func TestC51_PodsComeAndGo(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{MaxEvents: 500}})
	first := mustAppend(t, j, set("first", "1"), set("first", "2"), set("first", "3"), removed("first"))[3]
	for i := range 400 {
		var births, deaths []Event
		for k := range 10 {
			uid := types.UID(fmt.Sprint("pod-", i, "-", k))
			births, deaths = append(births, set(uid, "Pending")), append(deaths, removed(uid))
		}
		mustAppend(t, j, births...)
		for _, e := range births {
			j.PutAck(Ack{UID: e.UID, LiveUID: e.UID, Version: 1})
		}
		mustAppend(t, j, deaths...)
	}
	s, err := j.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.Pods != 0 || s.Tombstones > maxTombstones+indexEvery {
		t.Errorf("%d pods, %d tombstones", s.Pods, s.Tombstones)
	}
	if limit := uint64(500 + 500/8 + 1 + maxTombstones + indexEvery); s.Events > limit {
		t.Errorf("%d events, want at most %d", s.Events, limit)
	}
	if acks, _ := j.Acks(); len(acks) != 0 {
		t.Errorf("%d acks of pods that are gone", len(acks))
	}
	j = reopen(t, j)
	if _, there := newest(t, j)["first"]; there {
		t.Fatal("the oldest tombstone is still there: the test does not test what it says")
	}
	if again := mustAppend(t, j, set("first", "4"))[0]; again.Version <= first.Version {
		t.Errorf("version %d was used before", again.Version)
	}
}

func TestTombstoneAge(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{TombstoneAge: time.Nanosecond}})
	gone := mustAppend(t, j, set("a", "1"), set("a", "2"), removed("a"))[2]
	time.Sleep(time.Millisecond)
	j = reopen(t, j) // closing writes the index
	if s, _ := j.Stats(); s.Tombstones != 0 {
		t.Errorf("%d tombstones", s.Tombstones)
	}
	if again := mustAppend(t, j, set("a", "1"))[0]; again.Version <= gone.Version {
		t.Errorf("version %d was used before", again.Version)
	}
	// The old removed event is still history: that is no damage.
	if err := j.Snapshot(t.Context(), filepath.Join(t.TempDir(), "copy.db")); err != nil {
		t.Error(err)
	}
}

// C22: removing everything resets nothing.
func TestC22_SequenceSurvivesAnEmptyJournal(t *testing.T) {
	j := openNew(t, Options{Retention: Retention{MaxEvents: 1, TombstoneAge: time.Nanosecond}})
	var last Event
	for i := range 10 {
		uid := types.UID(fmt.Sprint(i))
		last = mustAppend(t, j, set(uid, "1"), removed(uid))[1]
	}
	j = reopen(t, reopen(t, j))
	if got := mustAppend(t, j, set("z", "1"))[0]; got.Sequence <= last.Sequence {
		t.Errorf("sequence %d after %d", got.Sequence, last.Sequence)
	}
}
