// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// tally counts events one by one. What is done for each event is little: a
// million of them take a few hundred milliseconds.
type tally struct {
	kinds   [math.MaxUint8 + 1]struct{ events, bytes uint64 }
	reasons map[journal.Reason]*uint64
	pods    []*podTally // by number; nil where a number was given, but no event seen
	hours   map[int64]*uint64
	first   journal.Sequence
	// onlyOpened is set while no other kind was seen.
	onlyOpened bool
	counted    uint64
	from       int64 // of times
	to         int64
	opened     int
	unclean    int

	hour     *uint64 // that of the last event
	hourEnds int64

	reason     *uint64 // that of the last event that has one
	reasonName journal.Reason
}

const hourNanos = int64(time.Hour)

// podTally is what is counted of one pod UID.
type podTally struct {
	podCount
	version  journal.Version // newest that is to be acked; 0 if there is none
	removed  bool
	absent   bool             // no event but rejected ones
	last     journal.Sequence // of the others
	ready    scan.Readiness
	changes  uint64
	lostAt   int64 // when readiness was lost; 0 if it is not
	unready  int64
	ack      journal.Ack
	latency  int64
	measured bool
}

func newTally() *tally {
	return &tally{reasons: map[journal.Reason]*uint64{}, hours: map[int64]*uint64{}, from: math.MaxInt64, to: math.MinInt64}
}

func (t *tally) add(r *scan.Record, acks map[types.UID]journal.Ack) {
	t.counted++
	// History begins with the first event about a pod; openings are kept longer.
	if opened := r.Kind == journal.KindOpened; t.first == 0 || t.onlyOpened && !opened {
		t.first, t.onlyOpened = r.Sequence, opened
	}
	kind := &t.kinds[r.Kind]
	kind.events++
	kind.bytes += uint64(r.Size)
	t.from, t.to = min(t.from, r.Nanos), max(t.to, r.Nanos)
	t.addHour(r.Nanos)
	switch r.Kind {
	case journal.KindOpened:
		t.opened++
		if r.Attribute(journal.AttrClean) == "false" {
			t.unclean++
		}
	case journal.KindSet, journal.KindRemoved:
		if t.reason == nil || r.Reason != t.reasonName { // mostly it is that of the event before
			t.reasonName = r.Reason
			if t.reason = t.reasons[t.reasonName]; t.reason == nil {
				t.reason = new(uint64)
				t.reasons[t.reasonName] = t.reason
			}
		}
		*t.reason++
	}
	if r.Pod == 0 {
		return
	}
	if need := int(r.Pod) - len(t.pods); need > 0 {
		t.pods = append(t.pods, make([]*podTally, need)...)
	}
	p := t.pods[r.Pod-1]
	if p == nil {
		p = &podTally{podCount: podCount{Namespace: string(r.Namespace), Name: string(r.Name), UID: types.UID(r.UID)}, absent: true}
		p.ack = acks[p.UID]
		t.pods[r.Pod-1] = p
	}
	p.add(r)
}

func (t *tally) addHour(nanos int64) {
	if t.hour == nil || nanos >= t.hourEnds || nanos < t.hourEnds-hourNanos {
		begins := nanos - ((nanos%hourNanos)+hourNanos)%hourNanos
		t.hourEnds = begins + hourNanos
		if t.hour = t.hours[begins]; t.hour == nil {
			t.hour = new(uint64)
			t.hours[begins] = t.hour
		}
	}
	*t.hour++
}

func (p *podTally) add(r *scan.Record) {
	p.Events++
	p.StatusBytes += uint64(r.StatusSize)
	p.StoredBytes += uint64(r.Size)
	switch r.Kind {
	case journal.KindRemoved:
		p.removed, p.absent, p.last, p.version = true, false, r.Sequence, 0
		p.endLoss(r.Nanos)
		p.ready = scan.Unstated
	case journal.KindSet, journal.KindFinished:
		p.removed, p.absent, p.last = false, false, r.Sequence
		if r.Reason != journal.ReasonObserved {
			p.version = r.Version
		}
		if r.Version == p.ack.Version && !p.ack.Time.IsZero() {
			p.latency, p.measured = max(p.ack.Time.UnixNano()-r.Nanos, 0), true
		}
		p.readiness(r)
	}
}

func (p *podTally) readiness(r *scan.Record) {
	if r.Readiness == scan.Unstated || r.Readiness == p.ready {
		return
	}
	if p.ready != scan.Unstated && (p.ready == scan.Ready || p.changes > 0) { // becoming ready for the first time is no change
		p.changes++
	}
	if r.Readiness == scan.Ready {
		p.endLoss(r.Nanos)
	} else if p.ready == scan.Ready {
		p.lostAt = r.Nanos
	}
	p.ready = r.Readiness
}

func (p *podTally) endLoss(nanos int64) {
	if p.lostAt != 0 {
		p.unready += max(nanos-p.lostAt, 0)
		p.lostAt = 0
	}
}

// count reads all events; the figures that the journal keeps are beside them.
func (s *session) count(ctx context.Context, top int) (statsReport, error) {
	r := statsReport{Info: s.Info(), ByKind: map[string]uint64{}, BytesByKind: map[string]uint64{}, ByReason: map[string]uint64{}}
	r.Path, r.Node = s.name, s.redact.word("node", r.Node)
	if s.redact != nil {
		r.Path = journal.FileName
	}
	acks := s.acks()
	t := newTally()
	head := s.Head()
	err := s.records(ctx, scan.Options{Pods: new(scan.Pods)}, s.damage.report, func(record *scan.Record) bool {
		s.progress.at("events read", record.Sequence, head)
		t.add(record, acks)
		return true
	})
	if err != nil {
		return r, err
	}
	t.pods = slices.DeleteFunc(t.pods, func(p *podTally) bool { return p == nil })
	if err := s.keptFigures(&r, t); err != nil {
		s.damage.report(err)
		r.Head = head
	}
	r.Acks = len(acks)
	r.fill(t, top, s.redact)
	return r, nil
}

// keptFigures are those that the journal itself keeps.
func (s *session) keptFigures(r *statsReport, t *tally) (err error) {
	if s.full != nil {
		r.Stats, err = s.full.Stats()
		return err
	}
	f := s.fast
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	r.Stats = journal.Stats{Head: f.Head.Sequence, Epoch: f.Head.Epoch, Horizon: f.Head.Horizon, First: t.first, Events: f.Head.Events,
		EventBytes: f.Head.Bytes, FileBytes: info.Size(), FreeBytes: int64(f.FreePages) * int64(f.PageSize)}
	r.FreePages, r.PageSize = f.FreePages, f.PageSize
	index, err := f.Index()
	if err != nil {
		return err
	}
	removed := make(map[types.UID]bool, len(index))
	for uid, e := range index {
		removed[uid] = e.Removed
	}
	for _, p := range t.pods { // what the index doesn't have yet
		if _, known := removed[p.UID]; !p.absent && (known || p.last > f.Head.Indexed) {
			removed[p.UID] = p.removed
		}
	}
	for _, gone := range removed {
		if gone {
			r.Tombstones++
		} else {
			r.Pods++
		}
	}
	return nil
}

// fill sorts what was counted.
func (r *statsReport) fill(t *tally, top int, redact *redactor) {
	r.Counted, r.Opened, r.UncleanOpened = t.counted, t.opened, t.unclean
	if t.counted > 0 {
		r.FirstTime, r.LastTime = time.Unix(0, t.from).UTC(), time.Unix(0, t.to).UTC()
	}
	for k, n := range t.kinds {
		if n.events > 0 {
			name := redact.text(journal.Kind(k).String())
			r.ByKind[name], r.BytesByKind[name] = n.events, n.bytes
		}
	}
	for name, n := range t.reasons {
		r.ByReason[redact.text(string(name))] += *n
	}
	var latencies []time.Duration
	r.Busiest, r.Flapping = []podCount{}, []flapCount{}
	for _, p := range t.pods {
		r.Busiest = append(r.Busiest, p.podCount)
		if p.changes > 1 {
			r.Flapping = append(r.Flapping, flapCount{p.Namespace, p.Name, p.UID, p.changes, time.Duration(p.unready).Seconds()})
		}
		if p.version > p.ack.Version {
			r.Unsynced++
		}
		if p.measured {
			latencies = append(latencies, time.Duration(p.latency))
		}
	}
	r.Latency = percentiles(latencies)
	slices.SortFunc(r.Busiest, func(a, b podCount) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	slices.SortFunc(r.Flapping, func(a, b flapCount) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	r.Busiest, r.Flapping = r.Busiest[:min(top, len(r.Busiest))], r.Flapping[:min(top, len(r.Flapping))]
	for i, p := range r.Busiest {
		r.Busiest[i].Namespace, r.Busiest[i].Name, r.Busiest[i].UID = redact.pod(p.Namespace, p.Name, p.UID)
	}
	for i, p := range r.Flapping {
		r.Flapping[i].Namespace, r.Flapping[i].Name, r.Flapping[i].UID = redact.pod(p.Namespace, p.Name, p.UID)
	}
	r.Hours = []hourCount{}
	for begins, n := range t.hours {
		r.Hours = append(r.Hours, hourCount{time.Unix(0, begins).UTC(), *n})
	}
	slices.SortFunc(r.Hours, func(a, b hourCount) int { return a.Hour.Compare(b.Hour) })
	r.BusiestHours = slices.Clone(r.Hours)
	slices.SortStableFunc(r.BusiestHours, func(a, b hourCount) int { return cmp.Compare(b.Events, a.Events) })
	r.BusiestHours = r.BusiestHours[:min(top, len(r.BusiestHours))]
}

// percentiles is nil without samples.
func percentiles(all []time.Duration) *latency {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)*percent+99)/100-1] }
	return &latency{Samples: len(all), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}
