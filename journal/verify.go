// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// Problem is one thing that Verify found, with its place.
type Problem struct {
	Bucket   string   `json:"bucket,omitempty"`
	Sequence Sequence `json:"sequence,omitempty"`
	Key      string   `json:"key,omitempty"`
	Page     uint64   `json:"page,omitempty"`   // of the engine
	Offset   int64    `json:"offset,omitempty"` // of that page in the file
	Message  string   `json:"message"`
}

func (p Problem) String() string {
	place := p.Bucket
	if p.Sequence != 0 {
		place += fmt.Sprintf(" sequence %d", p.Sequence)
	}
	if p.Key != "" {
		place += fmt.Sprintf(" key %q", p.Key)
	}
	return place + ": " + p.Message
}

// VerifyResult counts what Verify read.
type VerifyResult struct {
	Events   uint64 `json:"events"`
	Pods     int    `json:"pods"` // that are not removed
	Acks     int    `json:"acks"`
	Objects  int    `json:"objects"`
	Problems int    `json:"problems"`
	// Notes are odd but harmless: keys and buckets of somebody else.
	Notes []string `json:"notes,omitempty"`
}

// verifier carries what one run has found so far.
type verifier struct {
	*view
	ctx    context.Context
	report func(Problem)
	result VerifyResult
	head   head
	pods   map[types.UID]podIndex // folded from the events that are there
	sums   sums                   // of the values that are there
	bytes  uint64
	lost   Sequence // newest sequence that could not be read
	used   int64    // bytes of the file that are in use
	meter  *meter   // reading pages is one half of the work, reading events the other
}

// Verify reads everything: the engine's page structure, all checksums, gaps in
// sequences, versions per pod, the index against the events, acks against
// versions, and the kept figures against the counted ones. report, if not nil,
// gets each problem as it is found. The error is for what stopped the reading.
func (v *view) Verify(ctx context.Context, report func(Problem)) (VerifyResult, error) {
	c := &verifier{view: v, ctx: ctx, report: report, pods: map[types.UID]podIndex{}}
	if err := v.read(func(tx *bolt.Tx) error { c.used = tx.Size() - v.freeBytes; return nil }); err != nil {
		return c.result, err
	}
	c.meter = newMeter(ctx, 2*c.used)
	if v.suspect {
		c.problem(Problem{Bucket: "file", Message: "one of the two meta pages is invalid: the last commit may be missing"})
	}
	for _, err := range v.structure {
		p := Problem{Bucket: "file", Message: err.Error()}
		if place, ok := errors.AsType[*pageError](err); ok {
			p.Page, p.Offset = place.page, place.offset
		}
		c.problem(p)
	}
	for _, err := range v.defects {
		p := Problem{Bucket: string(bucketMeta), Message: cause(err).Error()}
		if place, ok := errors.AsType[*CorruptError](err); ok {
			p.Key = place.Key
		}
		c.problem(p)
	}
	for _, step := range []func() error{c.checkPages, c.checkHead, c.checkEvents, c.checkOpenings, c.checkIndex, c.checkAcks, c.checkObjects, c.checkSums} {
		err := step()
		if ctx.Err() != nil {
			return c.result, fmt.Errorf("verify journal %s: %w", v.path, context.Cause(ctx))
		}
		if err != nil {
			if errors.Is(err, ErrClosed) {
				return c.result, err
			}
			c.problem(Problem{Bucket: "file", Message: cause(err).Error()})
		}
	}
	for _, p := range c.pods {
		if !p.Removed {
			c.result.Pods++
		}
	}
	c.meter.at(2 * c.used)
	return c.result, nil
}

func (c *verifier) problem(p Problem) {
	c.result.Problems++
	if c.report != nil {
		c.report(p)
	}
}

func (c *verifier) note(format string, args ...any) {
	c.result.Notes = append(c.result.Notes, fmt.Sprintf(format, args...))
}

// checkPages has the engine walk its pages, and names buckets of others.
func (c *verifier) checkPages() error {
	return c.read(func(tx *bolt.Tx) error {
		err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if isOurs(name) {
				return nil
			}
			c.note("bucket %q is not one of a journal; it is left alone", name)
			return nil
		})
		if err != nil {
			return err
		}
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return c.walkPages(tx, b) })
	})
}

// walkPages reads every page that a bucket reaches, and the buckets of others
// inside if nothing is damaged: a damaged leaf page may lead anywhere. tx.Check does more, but in
// a goroutine of its own, where its panics on damaged pages cannot be caught.
func (c *verifier) walkPages(tx *bolt.Tx, b *bolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil && len(c.structure) == 0 {
			if inner := b.Bucket(k); inner != nil {
				return c.walkPages(tx, inner)
			}
		}
		c.meter.within(int64(len(k)+len(v)), c.used)
		return c.ctx.Err()
	})
}

func (c *verifier) checkHead() error {
	return c.read(func(tx *bolt.Tx) (err error) {
		c.head, err = c.view.head(tx)
		return err
	})
}

func (c *verifier) checkEvents() error {
	c.foreignKeys()
	c.meter.at(c.used)
	seen := uint64(0)
	epoch := Epoch(0)
	c.scan(1, 0, func(r rawRecord) bool {
		if r.err != nil {
			c.lost = r.seq
			c.problem(Problem{Bucket: string(bucketEvents), Sequence: r.seq, Message: cause(r.err).Error()})
			return true
		}
		seen++
		c.bytes += uint64(len(r.value))
		c.meter.within(int64(len(r.key)+len(r.value)), 2*c.used-1)
		e, err := decodeRecord(r.key, r.value)
		if err != nil {
			c.lost = r.seq
			c.problem(Problem{Bucket: string(bucketEvents), Sequence: r.seq, Message: err.Error()})
			return c.ctx.Err() == nil
		}
		if e.Epoch < epoch || e.Epoch > c.head.Epoch {
			c.problem(Problem{Bucket: string(bucketEvents), Sequence: r.seq, Message: fmt.Sprintf("epoch %d after epoch %d", e.Epoch, epoch)})
		}
		epoch = max(epoch, e.Epoch)
		c.checkVersion(&e)
		return c.ctx.Err() == nil
	})
	c.result.Events = seen
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.derived == nil && c.head.Sequence != 0 && (seen != c.head.Events || c.bytes != c.head.Bytes) {
		c.problem(Problem{Bucket: string(bucketMeta), Key: "head",
			Message: fmt.Sprintf("says %d events of %d bytes, there are %d of %d", c.head.Events, c.head.Bytes, seen, c.bytes)})
	}
	return nil
}

// checkVersion: a pod's versions only grow, and by one unless history between
// them was trimmed, an event between them is damaged (which is a problem of its
// own), or a lost commit made the journal skip.
func (c *verifier) checkVersion(e *Event) {
	if !indexed(e.Kind) {
		return
	}
	old, known := c.pods[e.UID]
	switch {
	case known && e.Version <= old.Version:
		c.problem(Problem{Bucket: string(bucketEvents), Sequence: e.Sequence, Key: string(e.UID),
			Message: fmt.Sprintf("version %d after version %d", e.Version, old.Version)})
	// A UID that returns after its tombstone was forgotten begins above the floor.
	case known && !old.Removed && e.Version > old.Version+1+c.head.skipped() && old.Newest > max(c.head.Horizon, c.lost):
		c.problem(Problem{Bucket: string(bucketEvents), Sequence: e.Sequence, Key: string(e.UID),
			Message: fmt.Sprintf("version %d follows version %d", e.Version, old.Version)})
	}
	c.pods[e.UID] = indexOf(e)
}

func (c *verifier) foreignKeys() {
	err := c.read(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketEvents).ForEach(func(k, v []byte) error {
			seq, ok := parseSequenceKey(k)
			if !ok {
				c.note("key %q in bucket events is not one of a journal; it is left alone", k)
			} else if seq > c.head.Sequence && c.head.Sequence != 0 {
				c.aboveHead(seq, k, v)
			}
			return nil
		})
	})
	_ = err // the scan that follows reports unreadable pages with their range
}

// aboveHead: a commit writes events and head together, so a good event above the
// head means that the head went back. What is no event there is somebody else's,
// and the next append takes its place.
func (c *verifier) aboveHead(seq Sequence, k, v []byte) {
	if _, err := decodeRecord(k, v); err != nil {
		c.note("key %d in bucket events is above the head %d and no event; the next append replaces it", seq, c.head.Sequence)
		return
	}
	c.problem(Problem{Bucket: string(bucketEvents), Sequence: seq, Message: fmt.Sprintf("event above the head %d", c.head.Sequence)})
}

// checkIndex compares each index record with the events it was made from.
func (c *verifier) checkIndex() error {
	return c.read(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketPods).ForEach(func(k, value []byte) error {
			c.sums.pods += sealSum(value)
			p, err := decodePodIndex(k, value)
			bad := Problem{Bucket: string(bucketPods), Key: string(k)}
			folded, ok := c.pods[types.UID(k)]
			switch {
			case err != nil:
				bad.Message = err.Error()
			case !ok:
				bad.Message = fmt.Sprintf("its newest event %d is not there", p.Newest)
			case p.Newest > folded.Newest || p.Version > folded.Version:
				bad.Message = fmt.Sprintf("says version %d at sequence %d, the events end with %d at %d", p.Version, p.Newest, folded.Version, folded.Newest)
			case p.Newest == folded.Newest && !p.Time.Equal(folded.Time), folded.Newest <= c.head.Indexed && p.Newest != folded.Newest:
				bad.Message = fmt.Sprintf("is not the record of event %d", folded.Newest)
			default:
				return nil
			}
			c.problem(bad)
			return nil
		})
	})
}

func (c *verifier) checkAcks() error {
	return c.read(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketAcks).ForEach(func(k, value []byte) error {
			c.result.Acks++
			c.sums.acks += sealSum(value)
			a, err := decodeAck(k, value)
			pod, ok := c.pods[types.UID(k)]
			bad := Problem{Bucket: string(bucketAcks), Key: string(k)}
			switch {
			case err != nil:
				bad.Message = err.Error()
			case !ok || pod.Removed:
				bad.Message = fmt.Sprintf("acked version %d of a pod that is not there", a.Version)
			case a.Version > pod.Version:
				bad.Message = fmt.Sprintf("acked version %d is above version %d", a.Version, pod.Version)
			default:
				return nil
			}
			c.problem(bad)
			return nil
		})
	})
}

func (c *verifier) checkObjects() error {
	return c.read(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketObjects).ForEach(func(k, value []byte) error {
			c.result.Objects++
			c.sums.objects += sealSum(value)
			if _, err := decodeObject(k, value); err != nil {
				c.problem(Problem{Bucket: string(bucketObjects), Key: string(k), Message: err.Error()})
			}
			return nil
		})
	})
}

func (c *verifier) checkSums() error {
	if !c.head.Sums.known {
		return nil
	}
	for _, s := range []struct {
		bucket    []byte
		want, got uint64
	}{
		{bucketPods, c.head.Sums.pods, c.sums.pods},
		{bucketAcks, c.head.Sums.acks, c.sums.acks},
		{bucketObjects, c.head.Sums.objects, c.sums.objects},
	} {
		if s.want != s.got {
			c.problem(Problem{Bucket: string(s.bucket), Message: fmt.Sprintf("%v (%d records, the head says %d)", errSum, s.got>>32, s.want>>32)})
		}
	}
	return nil
}
