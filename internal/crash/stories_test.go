// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"

	"github.com/statusstore/statusstore/journal"
	"k8s.io/apimachinery/pkg/types"
)

// scenarios are recorded one by one; together they make every kind of commit and
// every change of names that the journal knows.
var scenarios = []scenario{
	{name: "creation", tell: func(r *run) {
		r.open()
		r.append("first event", r.event(journal.KindSet, 1, 300))
		r.close()
		r.open()
		r.append("second event", r.event(journal.KindSet, 1, 300))
	}},
	{name: "commits", oneCommit: true, prepare: empty, tell: func(r *run) {
		r.open()
		for i := range 6 {
			r.append("set", r.event(journal.KindSet, i, 700))
		}
		r.append("with object", r.withObject(r.event(journal.KindSet, 1, 3000), 5000))
		r.append("finished", r.event(journal.KindFinished, 1, 100))
		rejected := r.event(journal.KindRejected, 2, 0)
		rejected.Attributes = map[string]string{journal.AttrContainer: "app", journal.AttrFrom: "terminated", journal.AttrTo: "running"}
		r.append("rejected", rejected)
		r.append("removed", r.event(journal.KindRemoved, 1, 0))
		r.append("came back", r.event(journal.KindSet, 1, 900))
		var batch []journal.Event
		for i := range 64 {
			batch = append(batch, r.event(journal.KindSet, i%9, 200+i))
		}
		r.append("batch of 64", batch...)
		r.append("large", r.event(journal.KindSet, 3, 90_000))
		r.append("removed and back in one batch", r.event(journal.KindRemoved, 3, 0), r.withObject(r.event(journal.KindSet, 3, 50), 900))
		for i := range 10 {
			r.append("set", r.event(journal.KindSet, i%4, 1500))
		}
		r.reopen()
		r.append("after a kill", r.event(journal.KindSet, 2, 800))
		r.close()
	}},
	{name: "acks", oneCommit: true, prepare: empty, tell: func(r *run) {
		r.open()
		var batch []journal.Event
		for i := range 40 {
			batch = append(batch, r.event(journal.KindSet, i, 120))
		}
		r.append("40 pods", batch...)
		for round := range 8 {
			for i := range 5 + 5*round {
				r.ack(batch[i%40].UID, r.versions[batch[i%40].UID])
			}
			if round%2 == 0 {
				r.flush()
			}
			r.append("acks ride along", r.event(journal.KindSet, round, 400))
		}
		r.j.ForgetAck("pod-9")
		r.j.ForgetAck("pod-3")
		r.flush()
		r.ack("pod-3", 1)
		r.append("removed with its ack", r.event(journal.KindRemoved, 4, 0))
		r.forget(4)
		r.ack("pod-5", r.versions["pod-5"])
		r.close()
		r.open()
		r.ack("pod-7", r.versions["pod-7"])
		r.flush()
	}},
	{name: "retention", oneCommit: true, limit: 60, prepare: empty, tell: func(r *run) {
		r.open()
		for round := range 24 {
			var batch []journal.Event
			for i := range 10 {
				batch = append(batch, r.event(journal.KindSet, (round*3+i)%14, 250))
			}
			r.append("trim", batch...)
		}
		for i := range 5 {
			r.append("remove", r.event(journal.KindRemoved, i, 0))
			r.forget(i)
		}
		var batch []journal.Event
		for i := range 1100 { // the index is written, tombstones are forgotten
			batch = append(batch, r.event(journal.KindSet, 5+i%9, 40))
		}
		r.append("index", batch...)
		r.append("a forgotten pod comes back", r.event(journal.KindSet, 1, 30))
		r.close()
		r.open()
	}},
	{name: "growth", oneCommit: true, limit: 40, prepare: empty, tell: func(r *run) {
		r.open()
		for i := range 14 {
			r.append("grow", r.event(journal.KindSet, i%3, 230_000))
		}
		r.append("grow by much", r.event(journal.KindSet, 1, 2_500_000))
		r.close()
	}},
	{name: "compaction", limit: 100, prepare: func(r *run) {
		r.journal(1<<20, func(j *journal.Journal) {
			for range 5 {
				var batch []journal.Event
				for i := range 400 {
					batch = append(batch, r.event(journal.KindSet, i%20, 2500))
				}
				if _, err := j.Append(r.t.Context(), batch...); err != nil {
					r.t.Fatal(err)
				}
			}
			j.PutAck(journal.Ack{UID: "pod-1", LiveUID: "pod-1", Version: 3})
		})
		r.journal(100, func(j *journal.Journal) {}) // trims
	}, tell: func(r *run) {
		r.open() // compacts
		r.append("after compaction", r.event(journal.KindSet, 1, 900))
		r.close()
	}},
	{name: "snapshot", prepare: empty, tell: func(r *run) {
		r.open()
		r.append("set", r.event(journal.KindSet, 1, 5000), r.withObject(r.event(journal.KindSet, 2, 500), 500))
		r.ack("pod-1", 1)
		r.flush()
		r.step("snapshot", func() error { return r.j.Snapshot(r.t.Context(), r.dir+"/"+copyName) })
		r.append("after the snapshot", r.event(journal.KindSet, 1, 5000))
		r.close()
	}},
	{name: "copies", prepare: func(r *run) {
		r.journal(0, func(j *journal.Journal) {
			for i := range 30 {
				if _, err := j.Append(r.t.Context(), r.event(journal.KindSet, i%7, 900)); err != nil {
					r.t.Fatal(err)
				}
			}
		})
	}, tell: func(r *run) {
		r.step("compact", func() error { _, err := journal.Compact(r.t.Context(), r.path, r.dir+"/"+copyName); return err })
		r.step("remove the copy", func() error { return r.dropCopy() })
		r.step("salvage", func() error { _, err := journal.Salvage(r.t.Context(), r.path, r.dir+"/"+copyName); return err })
	}},
	{name: "suspect", suspect: true, prepare: func(r *run) {
		r.journal(0, func(j *journal.Journal) {
			for i := range 12 {
				if _, err := j.Append(r.t.Context(), r.event(journal.KindSet, i%3, 600)); err != nil {
					r.t.Fatal(err)
				}
			}
			j.PutAck(journal.Ack{UID: "pod-1", LiveUID: "pod-1", Version: 2})
		})
		r.tearNewestMeta()
	}, tell: func(r *run) {
		r.open()
		r.append("after a torn meta page", r.event(journal.KindSet, 1, 600))
		r.append("and another", r.event(journal.KindSet, 1, 600), r.event(journal.KindSet, 9, 600))
		r.close()
	}},
}

// empty makes a journal that was opened and closed once.
func empty(r *run) { r.journal(0, func(*journal.Journal) {}) }

// forget stops looking for a removed pod: its tombstone is dropped when the
// index is written next.
func (r *run) forget(n int) {
	uid := types.UID(fmt.Sprint("pod-", n))
	delete(r.versions, uid)
	delete(r.statuses, uid)
}
