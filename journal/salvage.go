// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// SalvageResult says what salvage found.
type SalvageResult struct {
	Events  int             `json:"events"`
	Pods    int             `json:"pods"`
	Acks    int             `json:"acks"`
	Objects int             `json:"objects"`
	Lost    []SequenceRange `json:"lost,omitempty"` // not found at all
	// LostEvents counts the sequences in Lost.
	LostEvents uint64 `json:"lostEvents"`
	// LostKept is how many events at least are missing among those that retention
	// had spared while it trimmed their neighbours. Which, nothing tells.
	LostKept uint64 `json:"lostKept,omitempty"`
	// LostPods are those whose newest event is known of and not found: they come
	// back with an older status, or not at all.
	LostPods []types.UID `json:"lostPods,omitempty"`
	// EndUnknown: no head record was found, so newer events may be missing without
	// a trace.
	EndUnknown bool `json:"endUnknown,omitempty"`
	// LostObjects are the pods of which only such objects were found that are not
	// provably the newest: they are left out, and the pods are learned of anew.
	LostObjects []types.UID `json:"lostObjects,omitempty"`
}

const salvagingSuffix = ".salvaging-"

// SequenceRange is a range of sequences, both ends included.
type SequenceRange struct {
	From Sequence `json:"from"`
	To   Sequence `json:"to"`
}

// AttrSalvaged is set on the opened event that salvage appends: how many events
// were lost.
const AttrSalvaged = "salvaged"

// Salvage writes all that is provably good in the file at src to a new journal
// at dst, which must not exist. src is only read, page by page, without its
// tree, so it may be damaged in any way; a record is good if its checksum over
// key and value is right. Events that retention had dropped may come back as
// history.
//
// The new journal continues where the old one ended as far as that is known: in
// a new epoch, and with as many versions skipped for each pod as events are lost.
// A newer release's journal is refused with ErrNewerFormat.
func Salvage(ctx context.Context, src, dst string) (SalvageResult, error) {
	if _, err := os.Lstat(dst); err == nil {
		return SalvageResult{}, fmt.Errorf("salvage to %s: %w", dst, fs.ErrExist)
	}
	unlock, err := probeLock(src, time.Second, lockShared)
	if err != nil {
		return SalvageResult{}, err
	}
	defer unlock()
	if err := refuseNewer(src); err != nil {
		return SalvageResult{}, fmt.Errorf("salvage: %w", err)
	}
	s := &salvager{events: map[Sequence]candidate{}, index: map[types.UID]podIndex{}, acks: map[types.UID]Ack{}, objects: map[types.UID]objectCopy{}}
	info, err := os.Stat(src)
	if err != nil {
		return SalvageResult{}, fmt.Errorf("salvage: %w", err)
	}
	m := newMeter(ctx, 3*info.Size()) // reading, writing, verifying
	if err := scanPages(ctx, src, m, s.visit); err != nil {
		return SalvageResult{}, err
	}
	m.at(info.Size())
	s.dropUncommitted()
	if len(s.events) == 0 {
		return SalvageResult{}, &CorruptError{Path: src, Kind: ErrNotJournal, Err: errors.New("no good event in it")}
	}
	f, err := createTemp(dst, salvagingSuffix)
	if err != nil {
		return SalvageResult{}, fmt.Errorf("salvage to %s: %w", dst, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := s.writeTo(m.part(ctx, info.Size()), f); err != nil {
		return s.result, fmt.Errorf("salvage to %s: %w", dst, err)
	}
	if err := verifyCopy(m.part(ctx, info.Size()), f.Name()); err != nil {
		return s.result, fmt.Errorf("salvage to %s: %w", dst, err)
	}
	if err := publish(f.Name(), dst); err != nil {
		return s.result, fmt.Errorf("salvage to %s: %w", dst, err)
	}
	return s.result, nil
}

// refuseNewer lets all pass that can't be opened for another reason: a newer
// release's journal is not damaged, and what this one knows of it is not all.
func refuseNewer(path string) error {
	r, err := OpenReadOnly(path, ReadOptions{})
	switch {
	case err == nil:
		return r.Close()
	case errors.Is(err, ErrNewerFormat):
		return err
	default:
		return nil
	}
}

// salvager collects good records. Free pages hold older copies of records, and
// such that were never committed: a crash leaves them, and their sequences are
// used again. Of acks and index records the highest wins, which is safe because
// versions only grow.
type salvager struct {
	about   about
	head    head // highest values that any head record has, and Events of the newest
	events  map[Sequence]candidate
	index   map[types.UID]podIndex
	acks    map[types.UID]Ack
	objects map[types.UID]objectCopy
	result  SalvageResult

	bySequence map[Sequence][]types.UID // whose objects came with an event
}

// candidate is a good record for a sequence. Of two the later one counts.
type candidate struct {
	epoch Epoch
	time  time.Time
	value []byte
}

func (c candidate) after(d candidate) bool {
	return c.epoch > d.epoch || c.epoch == d.epoch && c.time.After(d.time)
}

func (s *salvager) visit(key, value []byte) {
	if seq, ok := parseSequenceKey(key); ok {
		if e, err := decodeRecord(key, value); err == nil {
			c := candidate{epoch: e.Epoch, time: e.Time}
			if old, known := s.events[seq]; !known || c.after(old) {
				c.value = slices.Clone(value)
				s.events[seq] = c
			}
			return
		}
	}
	switch string(key) {
	case string(keyAbout):
		if a, err := decodeAbout(value); err == nil {
			s.about = a
		}
		return
	case string(keyHead):
		if h, err := decodeHead(value); err == nil {
			if h.Sequence > s.head.Sequence || h.Sequence == s.head.Sequence && h.Events < s.head.Events {
				s.head.Sequence, s.head.Events = h.Sequence, h.Events
			}
			s.head.Epoch = max(s.head.Epoch, h.Epoch)
			s.head.Horizon, s.head.Floor = max(s.head.Horizon, h.Horizon), max(s.head.Floor, h.Floor)
		}
		return
	}
	uid := types.UID(key)
	if object, err := decodeObject(key, value); err == nil && looksLikeObject(value) {
		s.objects[uid] = s.objects[uid].newer(object)
		return
	}
	if a, err := decodeAck(key, value); err == nil && looksLikeAck(value) && a.Version > s.acks[uid].Version {
		s.acks[uid] = a
		return
	}
	if p, err := decodePodIndex(key, value); err == nil && looksLikeIndex(value) && p.Version > s.index[uid].Version {
		s.index[uid] = p
	}
}

// dropUncommitted removes events that a later epoch took the place of: epochs
// never fall along the sequence.
func (s *salvager) dropUncommitted() {
	epoch := Epoch(0)
	for _, seq := range slices.Sorted(maps.Keys(s.events)) {
		if e := s.events[seq].epoch; e < epoch {
			delete(s.events, seq)
		} else {
			epoch = e
		}
	}
}

// Which kind of record a value under a UID is, its number of elements tells
// (with the checksum: objects have 3 or 4, acks 4, index records 7), and that acks
// begin with a string.
func looksLikeObject(value []byte) bool {
	return (value[0] == 0x93 || value[0] == 0x94) && value[1] <= compressionS2
}
func looksLikeAck(value []byte) bool   { return value[0] == 0x94 && value[1] > compressionS2 }
func looksLikeIndex(value []byte) bool { return value[0] == 0x97 }

// writeTo fills an empty file. It is a copy like a snapshot: what it went on with
// after its newest record, nobody knows.
func (s *salvager) writeTo(ctx context.Context, f *os.File) error {
	if err := letGo(f); err != nil {
		return err
	}
	if err := errors.Join(s.write(ctx, f.Name()), hold(f)); err != nil {
		return err
	}
	return errors.Join(stampCopy(f), fit(f))
}

func (s *salvager) write(ctx context.Context, path string) error {
	if err := fill(path, s.about, Options{LockTimeout: time.Second}); err != nil {
		return err
	}
	db, err := openBolt(path, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	return errors.Join(guard(path, func() error { return s.fill(ctx, db) }), guard(path, db.Close))
}

func (s *salvager) fill(ctx context.Context, db *bolt.DB) error {
	m := newMeter(ctx, int64(len(s.events)))
	sequences := slices.Sorted(maps.Keys(s.events))
	s.bySequence = map[Sequence][]types.UID{}
	for uid, c := range s.objects {
		s.bySequence[c.sequence] = append(s.bySequence[c.sequence], uid)
	}
	h := head{Floor: s.head.Floor, Epoch: s.head.Epoch}
	pods := map[types.UID]podIndex{}
	for chunk := range slices.Chunk(sequences, 1024) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.add(int64(len(chunk)))
		err := db.Update(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketEvents)
			b.FillPercent = 1
			for _, seq := range chunk {
				key, value := sequenceKey(seq), s.events[seq].value
				e, err := decodeRecord(key, value)
				if err != nil {
					return err
				}
				if indexed(e.Kind) {
					pods[e.UID] = indexOf(&e)
				}
				if e.Kind == KindOpened {
					if err := s.listOpening(tx, key, e.Epoch); err != nil {
						return err
					}
				}
				s.judgeObjects(&e)
				h.Epoch = max(h.Epoch, e.Epoch)
				h.Events++
				h.Bytes += uint64(len(value))
				if err := b.Put(key, value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	h.Sequence = max(sequences[len(sequences)-1], s.head.Sequence)
	s.countLost(sequences, h.Sequence)
	skip := s.lostPods(&h, pods)
	return db.Update(func(tx *bolt.Tx) error { return s.finish(tx, h, pods, skip) })
}

func (s *salvager) listOpening(tx *bolt.Tx, key []byte, e Epoch) error {
	b, err := tx.CreateBucketIfNotExists(bucketOpenings)
	if err != nil {
		return err
	}
	return b.Put(key, encodeOpening(newSealer(), key, e))
}

// countLost names the gaps that retention does not explain, up to where a head
// record says the journal went, and counts what is missing besides.
func (s *salvager) countLost(sequences []Sequence, top Sequence) {
	last := s.head.Horizon
	gap := func(next Sequence) {
		if next > last+1 {
			s.result.Lost = append(s.result.Lost, SequenceRange{last + 1, next - 1})
			s.result.LostEvents += uint64(next - last - 1)
		}
		last = max(last, next)
	}
	for _, seq := range sequences {
		gap(seq)
	}
	gap(top + 1)
	// An event above the head makes it an old one, which counts what was trimmed since.
	found, newest := uint64(len(sequences))+s.result.LostEvents, sequences[len(sequences)-1]
	if newest <= s.head.Sequence && found < s.head.Events {
		s.result.LostKept = s.head.Events - found
	}
}

// horizon is where the gaps end that are known of.
func (s *salvager) horizon() Sequence {
	if n := len(s.result.Lost); n > 0 {
		return max(s.head.Horizon, s.result.Lost[n-1].To)
	}
	return s.head.Horizon
}

// lostPods compares the index with what was found, and returns how many versions
// each pod must skip so that none is given away twice.
func (s *salvager) lostPods(h *head, pods map[types.UID]podIndex) Version {
	lost := Version(s.result.LostEvents + s.result.LostKept)
	skip := lost + 1 // that the last event was the last, nothing proves
	for uid, known := range s.index {
		found, ok := pods[uid]
		if known.Version <= found.Version {
			continue
		}
		if ok {
			skip = max(skip, known.Version-found.Version+lost+1)
		} else {
			h.Floor = max(h.Floor, known.Version)
		}
		if !known.Removed {
			s.result.LostPods = append(s.result.LostPods, uid)
		}
	}
	slices.Sort(s.result.LostPods)
	return skip
}

// finish writes all but the events, and the opened event that says what happened.
func (s *salvager) finish(tx *bolt.Tx, h head, pods map[types.UID]podIndex, skip Version) error {
	w := newSealer()
	h.Sequence++
	h.Epoch++
	h.distrust(h.Sequence, skip)
	note := Event{Kind: KindOpened, Sequence: h.Sequence, Epoch: h.Epoch, Time: time.Now().UTC(),
		Attributes: map[string]string{AttrSuspect: "true", AttrSalvaged: strconv.FormatUint(s.result.LostEvents+s.result.LostKept, 10), AttrClean: "false"}}
	key := sequenceKey(h.Sequence)
	value := encodeRecord(w, key, &note, payload{})
	h.Events++
	h.Bytes += uint64(len(value))
	h.Horizon, h.Indexed = s.horizon(), h.Sequence
	if err := tx.Bucket(bucketEvents).Put(key, value); err != nil {
		return err
	}
	if err := s.listOpening(tx, key, h.Epoch); err != nil {
		return err
	}
	for uid, p := range pods {
		if err := tx.Bucket(bucketPods).Put([]byte(uid), p.encode(w, uid)); err != nil {
			return err
		}
		if p.Removed {
			continue
		}
		s.result.Pods++
		if a, ok := s.acks[uid]; ok && a.Version <= p.Version {
			s.result.Acks++
			if err := tx.Bucket(bucketAcks).Put([]byte(uid), a.encode(w)); err != nil {
				return err
			}
		}
		if object, ok := s.objects[uid]; ok && object.doubt {
			s.result.LostObjects = append(s.result.LostObjects, uid)
		} else if ok {
			s.result.Objects++
			if err := tx.Bucket(bucketObjects).Put([]byte(uid), object.encode(w, uid)); err != nil {
				return err
			}
		}
	}
	s.result.Events, s.result.EndUnknown = len(s.events), s.head.Sequence == 0
	slices.Sort(s.result.LostObjects)
	var err error
	if h.Sums, err = sumAll(tx); err != nil {
		return err
	}
	meta := tx.Bucket(bucketMeta)
	return errors.Join(meta.Put(keyHead, h.encode(w)), meta.Put(keyOpened, openedState{clean: false}.encode(w)))
}
