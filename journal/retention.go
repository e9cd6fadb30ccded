// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Retention bounds the history that is kept. Each pod's newest event always
// stays; of the others the oldest go first, in slices inside the commits. Opened
// events do not count: the newest 100 stay, and those of epochs that have events.
type Retention struct {
	// EventsPerPod is the history kept per pod, on average over all pods.
	// Default 40.
	EventsPerPod int
	// MaxEvents bounds the events of pods. Default: EventsPerPod for each pod, and at
	// least 1000.
	MaxEvents int
	// MaxBytes bounds the records of all events. Default 256 MiB.
	MaxBytes int64
	// TombstoneAge is how long the version of a removed pod is remembered by
	// itself; afterwards a common floor keeps versions from being used twice.
	// Default 1 h; of more than 1024 tombstones the oldest go earlier.
	TombstoneAge time.Duration
}

const (
	defaultEventsPerPod = 40
	minEvents           = 1000
	defaultMaxBytes     = 256 << 20
	defaultTombstoneAge = time.Hour
	maxTombstones       = 1024

	// trimSlice is the excess that starts a trim and about what one removes.
	// Fewer, larger trims touch fewer pages per event.
	trimSlice = 256
	// trimWhenFull is what a commit on a full disk trims to get pages back.
	trimWhenFull = 64
	// maxTrimScan bounds the events looked at in one commit.
	maxTrimScan = 4096
)

func (r Retention) withDefaults() (Retention, error) {
	if r.EventsPerPod < 0 || r.MaxEvents < 0 || r.MaxBytes < 0 || r.TombstoneAge < 0 {
		return r, fmt.Errorf("retention %+v has a negative limit", r)
	}
	if r.EventsPerPod == 0 {
		r.EventsPerPod = defaultEventsPerPod
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = defaultMaxBytes
	}
	if r.TombstoneAge == 0 {
		r.TombstoneAge = defaultTombstoneAge
	}
	return r, nil
}

func (r Retention) limit(pods int) uint64 {
	if r.MaxEvents > 0 {
		return uint64(r.MaxEvents)
	}
	return uint64(max(minEvents, r.EventsPerPod*pods))
}

// trim deletes the oldest events beyond the limits, sparing each pod's newest, and
// opened ones, which count by themselves.
// A spared event that is later superseded is deleted by that commit.
func (j *Journal) trim(events *bolt.Bucket, p *plan) error {
	limit := j.opts.Retention.limit(len(j.pods))
	slack := min(trimSlice, limit/8+1)
	maxBytes := uint64(j.opts.Retention.MaxBytes)
	overBytes := p.head.Bytes > maxBytes
	if overBytes {
		maxBytes -= maxBytes / 16 // so that the next commits need not trim again
	}
	openings := uint64(len(p.openings))
	if kept := p.head.Events - min(openings, p.head.Events); j.room.scarce() && kept <= limit+slack {
		// History gives way to what has to be stored although the disk is full.
		limit, slack = kept-min(trimWhenFull, kept), 0
	}
	if p.head.Events <= limit+slack+openings && !overBytes {
		return nil
	}
	var keys [][]byte
	count, bytes, scanned := p.head.Events-min(openings, p.head.Events), p.head.Bytes, 0
	c := events.Cursor()
	for k, v := c.Seek(sequenceKey(p.trimmed + 1)); k != nil && scanned < maxTrimScan; k, v = c.Next() {
		if count <= limit && bytes <= maxBytes {
			break
		}
		seq, ok := parseSequenceKey(k)
		scanned++
		if !ok || seq <= p.trimmed {
			continue
		}
		p.trimmed = seq
		if j.isNewest(p, seq) || p.isOpening(seq) {
			continue
		}
		keys = append(keys, k)
		count--
		bytes -= uint64(len(v))
	}
	p.head.Events -= uint64(len(keys))
	// Deleting while the cursor moves would make it skip keys.
	for _, k := range keys {
		if err := events.Delete(k); err != nil {
			return err
		}
	}
	p.head.Bytes = bytes
	p.head.Horizon = max(p.head.Horizon, p.trimmed)
	return nil
}

func (j *Journal) isNewest(p *plan, seq Sequence) bool {
	uid, ok := j.newest[seq]
	if pod, changed := p.pods[uid]; ok && changed {
		return pod.Newest == seq
	}
	if ok {
		return true
	}
	return p.added[seq] // an event of this very commit
}
