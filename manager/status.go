// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/syncer"
)

// Status is the state of the manager as a whole.
type Status struct {
	Node         string           `json:"node"`
	Epoch        journal.Epoch    `json:"epoch"`
	HeadSequence journal.Sequence `json:"headSequence"`

	Pods    int `json:"pods"`
	Pending int `json:"pending"` // pods whose newest version is not acked
	// AckedVersionsBehind sums up the versions that are not acked.
	AckedVersionsBehind uint64 `json:"ackedVersionsBehind"`
	// OldestPending is the time of the oldest version that is not acked.
	OldestPending *time.Time `json:"oldestPending,omitempty"`
	// Rejected counts refused updates since the start.
	Rejected uint64 `json:"rejected"`

	// Syncing: there is a client. LiveSynced: the first LIST is complete.
	Syncing       bool         `json:"syncing"`
	LiveSynced    bool         `json:"liveSynced"`
	Failing       int          `json:"failing"` // pods put aside after their last request
	FailingPods   []FailingPod `json:"failingPods,omitempty"`
	LastSyncError string       `json:"lastSyncError"`
	LastSyncTime  *time.Time   `json:"lastSyncErrorTime,omitempty"`
	// ServerFailing: the last LIST or WATCH failed, or the server is taken for dead.
	ServerFailing bool `json:"serverFailing"`

	Journal        string `json:"journal"`
	JournalBytes   int64  `json:"journalBytes"`
	Degraded       bool   `json:"degraded"` // writes fail, reads work
	DegradedReason string `json:"degradedReason,omitempty"`
	// UncleanStart: the run before this one did not close the journal.
	UncleanStart bool `json:"uncleanStart"`
	// Suspect: the last commit before the start may be lost.
	Suspect bool `json:"suspect,omitempty"`
}

// FailingPod is a pod whose last request was not fine.
type FailingPod struct {
	UID       types.UID       `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Version   journal.Version `json:"version"`
	Reason    string          `json:"reason"`
	Message   string          `json:"message,omitempty"`
	Code      int             `json:"code,omitempty"`
	Attempts  int             `json:"attempts"`
	Since     time.Time       `json:"since"`
	RetryAt   time.Time       `json:"retryAt"`
}

// Status returns the state of the manager. After Close, figures of the file are
// missing.
func (m *Manager) Status() Status {
	head, _ := m.journal.Head()
	counts := m.projection.Counts()
	info := m.journal.Info()
	s := Status{
		Node: cmp.Or(m.opts.Node, info.Node), HeadSequence: head,
		Pods: counts.Pods, Pending: counts.Pending, AckedVersionsBehind: counts.AckedVersionsBehind,
		Rejected: m.rejections.sum(), Journal: m.opts.Path,
		UncleanStart: !m.journal.WasClean(), Suspect: info.Suspect,
	}
	for _, e := range m.projection.List() {
		if e.Pending() && (s.OldestPending == nil || e.PendingSince.Before(*s.OldestPending)) {
			s.OldestPending = new(e.PendingSince)
		}
	}
	if stats, err := m.journal.Stats(); err == nil {
		s.JournalBytes, s.Epoch = stats.FileBytes, stats.Epoch
	}
	if err := m.Writable(); err != nil {
		s.Degraded, s.DegradedReason = true, err.Error()
	}
	m.addSyncing(&s)
	return s
}

func (m *Manager) addSyncing(s *Status) {
	if m.syncer == nil {
		return
	}
	s.Syncing, s.LiveSynced = true, m.live.HasSynced()
	var at time.Time
	s.LastSyncError, at = m.syncer.LastError()
	// Without pods to send, LIST and WATCH alone tell that the server is away.
	text, listed := m.live.LastError()
	if listed.After(at) {
		s.LastSyncError, at = text, listed
	}
	s.ServerFailing = text != "" || m.syncer.Stats().CircuitOpen
	if !at.IsZero() {
		s.LastSyncTime = &at
	}
	for uid, f := range m.syncer.Failing() {
		s.FailingPods = append(s.FailingPods, m.failingPod(uid, f))
	}
	s.Failing = len(s.FailingPods)
	slices.SortFunc(s.FailingPods, func(a, b FailingPod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

func (m *Manager) failingPod(uid types.UID, f syncer.Failure) FailingPod {
	p := FailingPod{UID: uid, Reason: f.Reason, Message: f.Message, Code: f.Code, Attempts: f.Attempts, Since: f.Since, RetryAt: f.RetryAt}
	if e, ok := m.projection.Get(uid); ok {
		p.Namespace, p.Name, p.Version = e.Namespace, e.Name, e.Version
	}
	return p
}

// Writable is nil as long as writes work: the manager is open, its last write
// worked and what was written could be folded. Otherwise it says why.
func (m *Manager) Writable() error {
	if err := m.checkOpen(); err != nil {
		return err
	}
	if err := m.journal.Degraded(); err != nil {
		return err
	}
	return m.projection.Err()
}

// Failed is closed when the journal cannot be written in this process any more.
// Run returns then, too.
func (m *Manager) Failed() <-chan struct{} { return m.journal.Failed() }
