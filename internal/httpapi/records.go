// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/projection"
	"github.com/statusstore/statusstore/syncer"
)

// GET /statusstore/v1/status
func (a *api) getStatus(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.status())
	return nil
}

func (a *api) status() Status {
	m := a.m.Status()
	s := Status{
		Node: m.Node, Mode: a.Mode, Software: a.Software,
		Epoch: m.Epoch, HeadSequence: m.HeadSequence,
		Pods: m.Pods, Pending: m.Pending, AckedVersionsBehind: m.AckedVersionsBehind, OldestPending: m.OldestPending,
		Failing: m.Failing, Rejected: m.Rejected,
		JournalBytes: m.JournalBytes, LastSyncError: m.LastSyncError, LastSyncErrorTime: m.LastSyncTime,
		ServerFailing: m.ServerFailing,
		Degraded:      m.Degraded, DegradedReason: m.DegradedReason,
		Syncing: m.Syncing || a.Syncing, LiveSynced: m.LiveSynced,
		Journal: m.Journal, Suspect: m.Suspect, UncleanStart: m.UncleanStart, Started: a.started.UTC(),
	}
	if a.Live != nil && !m.Syncing { // record mode: the manager has no client
		s.LiveSynced = a.Live.HasSynced()
		if text, at := a.Live.LastError(); text != "" {
			s.LastSyncError, s.LastSyncErrorTime, s.ServerFailing = text, timeOrNil(at), true
		}
	}
	if stats, err := a.m.Journal().Stats(); err == nil {
		s.Events, s.FreeBytes = stats.Events, stats.FreeBytes
	}
	failures := a.m.Failing()
	for _, p := range m.FailingPods {
		s.FailingPods = append(s.FailingPods, FailingPod{
			UID: p.UID, Namespace: p.Namespace, Name: p.Name, Version: p.Version, Reason: p.Reason,
			Message: failures[p.UID].Message, Attempts: p.Attempts, Since: p.Since, RetryAt: timeOrNil(p.RetryAt),
		})
	}
	return s
}

// GET /statusstore/v1/pods
func (a *api) getRecords(w http.ResponseWriter, _ *http.Request) error {
	failures := a.m.Failing()
	list := PodRecordList{Pods: []PodRecord{}}
	for _, e := range a.m.Entries() {
		list.Pods = append(list.Pods, recordOf(e, failures))
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// GET /statusstore/v1/pods/{uid}
func (a *api) getRecord(w http.ResponseWriter, r *http.Request) error {
	e, err := a.entryByUID(r)
	if err != nil {
		return err
	}
	setPodHeaders(w, e)
	writeJSON(w, http.StatusOK, recordOf(e, a.m.Failing()))
	return nil
}

// entryByUID takes either UID of a static pod and its mirror.
func (a *api) entryByUID(r *http.Request) (*projection.Entry, error) {
	uid := types.UID(r.PathValue("uid"))
	if e, ok := a.m.Entry(uid); ok {
		return e, nil
	}
	if _, ok := a.m.Pod(uid); ok {
		return nil, fmt.Errorf("pod %s: %w", uid, manager.ErrNoStatus)
	}
	return nil, fmt.Errorf("pod %s: %w", uid, manager.ErrUnknownPod)
}

func recordOf(e *projection.Entry, failures map[types.UID]syncer.Failure) PodRecord {
	r := PodRecord{
		UID: e.UID, Namespace: e.Namespace, Name: e.Name,
		Version: e.Version, AckedVersion: e.Acked, Sequence: e.Sequence, State: StateAcked,
		AckedUID: e.AckedUID, Phase: e.Status.Phase, Reason: e.Reason, Finished: e.Finished,
		Time: e.Time, PendingSince: timeOrNil(e.PendingSince),
	}
	if e.Pending() {
		r.State = StatePending
	}
	if f, ok := failures[e.UID]; ok {
		r.State, r.LastError, r.Attempts, r.RetryAt = StateFailing, f.Reason, f.Attempts, timeOrNil(f.RetryAt)
		if f.Message != "" {
			r.LastError += ": " + f.Message
		}
	}
	return r
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
