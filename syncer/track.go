// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// track is what the syncer remembers of a pod between requests. Losing it costs
// a comparison or an early retry, never a status.
type track struct {
	busy chan struct{} // closed and replaced by nil when the holder is done

	wait    pause
	failure Failure // Attempts is 0 if the last request was fine

	recent  answer
	settled settled
	drop    dropping
	repairs repairs
	made    made
	kept    journal.Version // reported fields that stay as the server has them
	resting journal.Version // pending, but nothing can be sent for now
	logged  time.Time       // last line about a failure
}

// made is what the server made of a status that it accepted and changed, as a
// server does that doesn't know a field. Sending the same again wouldn't help.
type made struct {
	sent, got *v1.PodStatus // nil: the server kept what it was sent
}

// again reports whether a status has had its chance with what the server holds.
func (m made) again(live *v1.Pod, status *v1.PodStatus) bool {
	return m.sent != nil && podstatus.Equal(m.sent, status) && !podstatus.NeedsReconcile(live, m.got)
}

// answer is the object that the server answered with last, until the informer
// has caught up. Without it the next patch would be computed from an older object.
type answer struct {
	pod   *v1.Pod // nil: none
	at    time.Time
	lists int64 // LISTs that the informer had begun then
	got   bool  // answer to a GET
}

// answerMaxAge is how far the informer may be behind. An older event that comes
// later than that is news: the server was restored from a backup.
const answerMaxAge = 5 * time.Second

// pause says when and why the next request is put off.
type pause struct {
	on      waitFor
	until   time.Time
	tried   time.Time       // the last request
	version journal.Version // that was tried
	fault   fault           // of waitServer
}

type waitFor uint8

const (
	waitNothing  waitFor = iota
	waitRefused          // a new version cuts it short
	waitGone             // the pod's appearance cuts it short
	waitServer           // ends when the circuit closes
	waitThrottle         // nothing cuts it short
)

// settled is what was compared and found in order. As long as nothing of it
// changes, a pass needs not compare again.
type settled struct {
	version, acked    journal.Version
	incarnation       journal.Incarnation
	finished          bool
	ackedUID, liveUID types.UID
	liveVersion       string // live resourceVersion
}

func settledOn(e *projection.Entry, live *v1.Pod) settled {
	return settled{
		version: e.Version, acked: e.Acked, incarnation: e.Incarnation, finished: e.Finished,
		ackedUID: e.AckedUID, liveUID: live.UID, liveVersion: live.ResourceVersion,
	}
}

// dropping is a removal that the journal didn't take yet. The server has already
// done its part, which must not be asked for again.
type dropping struct {
	reason      journal.Reason // empty: none
	incarnation journal.Incarnation
}

// repairs slows down a fight with another writer of the status.
type repairs struct {
	sent  sending
	count int // of times that it was sent
	last  time.Time
}

// sending tells apart what may be sent of one entry.
type sending struct {
	version journal.Version
	held    bool
}

const (
	repairBase = time.Second
	repairMax  = 10 * time.Second
	repairIdle = time.Minute // after that much peace it starts anew
)

// due returns when the same may be sent once more.
func (r repairs) due(s sending, now time.Time) time.Time {
	if r.count == 0 || r.sent != s || now.Sub(r.last) > repairIdle {
		return now
	}
	return r.last.Add(backoff{repairBase, repairMax}.after(r.count))
}

func (r *repairs) note(s sending, now time.Time) {
	if r.sent != s || now.Sub(r.last) > repairIdle {
		*r = repairs{sent: s}
	}
	r.count, r.last = r.count+1, now
}

// tracks is the table of all pods that the syncer has dealt with.
type tracks struct {
	mu   sync.Mutex
	pods map[types.UID]*track // guarded by mu, with all fields of the tracks
}

// acquire waits until nobody else deals with the pod: the queue keeps workers
// apart, this keeps them apart from SyncOnce.
func (t *tracks) acquire(ctx context.Context, uid types.UID) error {
	for {
		t.mu.Lock()
		p := t.pods[uid]
		if p == nil {
			p = new(track)
			t.pods[uid] = p
		}
		busy := p.busy
		if busy == nil {
			p.busy = make(chan struct{})
		}
		t.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (t *tracks) release(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pods[uid]; p != nil && p.busy != nil {
		close(p.busy)
		p.busy = nil
	}
}

// get returns a copy.
func (t *tracks) get(uid types.UID) (track, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pods[uid]; p != nil {
		return *p, true
	}
	return track{}, false
}

// update changes a track, if there is one.
func (t *tracks) update(uid types.UID, change func(*track)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pods[uid]; p != nil {
		change(p)
	}
}

// forget empties the track of a pod whose object is gone. The holder's mark stays
// until it is released; prune takes the rest.
func (t *tracks) forget(uid types.UID) {
	t.update(uid, func(p *track) { *p = track{busy: p.busy} })
}

// retire empties the track of a pod without entry. The server's last answer stays:
// should the UID return at once, the informer's object may be older.
func (t *tracks) retire(uid types.UID) {
	t.update(uid, func(p *track) { *p = track{busy: p.busy, recent: p.recent} })
}

// prune removes tracks of pods without entry.
func (t *tracks) prune(known func(types.UID) bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, p := range t.pods {
		if p.busy == nil && !known(uid) && (p.recent.pod == nil || now.Sub(p.recent.at) > answerMaxAge) {
			delete(t.pods, uid)
		}
	}
}

// caughtUp drops the answer if the informer's object makes it superfluous, and
// reports whether they are the same.
func (t *track) caughtUp(informer *v1.Pod, lists int64, now time.Time) bool {
	if t.recent.pod == nil {
		return false
	}
	same := t.recent.pod.UID == informer.UID && t.recent.pod.ResourceVersion == informer.ResourceVersion
	_, ahead := newer(informer, t.recent, lists)
	if same || !ahead || now.Sub(t.recent.at) > answerMaxAge {
		t.recent = answer{}
	}
	return same
}

// newer returns the newer of two states of the pod with a name, and whether it is
// the answer. The informer's is preferred when they can't be compared, or after
// a LIST that began after the answer: then resourceVersions may even have gone back.
// lists is the number of the informer's newest complete LIST.
func newer(informer *v1.Pod, recent answer, lists int64) (*v1.Pod, bool) {
	if recent.pod == nil || lists > recent.lists {
		return informer, false
	}
	if informer == nil {
		return recent.pod, true
	}
	order, err := resourceversion.CompareResourceVersion(recent.pod.ResourceVersion, informer.ResourceVersion)
	if err == nil && order >= 0 {
		return recent.pod, true
	}
	return informer, false
}
