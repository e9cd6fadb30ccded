// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// Headers of answers that carry one pod.
const (
	HeaderVersion      = "Statusstore-Version"
	HeaderAckedVersion = "Statusstore-Acked-Version"
	HeaderSequence     = "Statusstore-Sequence"
)

// Paths that don't exist in Kubernetes.
const (
	PathStatus   = "/statusstore/v1/status"
	PathPods     = "/statusstore/v1/pods"
	PathRetain   = "/statusstore/v1/retain"
	PathEvents   = "/statusstore/v1/events"
	PathSnapshot = "/statusstore/v1/snapshot"
)

// PodPath is the path of a pod in Kubernetes' API.
func PodPath(namespace, name string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods/" + url.PathEscape(name)
}

// PodStatusPath takes GET, PUT and PATCH.
func PodStatusPath(namespace, name string) string { return PodPath(namespace, name) + "/status" }

// HistoryPath takes GET.
func HistoryPath(uid types.UID) string { return callPath(uid, "history") }

// ReadinessPath takes POST with a ReadinessRequest.
func ReadinessPath(uid types.UID) string { return callPath(uid, "readiness") }

// StartupPath takes POST with a StartupRequest.
func StartupPath(uid types.UID) string { return callPath(uid, "startup") }

// TerminatePath takes POST without a body.
func TerminatePath(uid types.UID) string { return callPath(uid, "terminate") }

// FinishedPath takes POST without a body.
func FinishedPath(uid types.UID) string { return callPath(uid, "finished") }

func callPath(uid types.UID, call string) string {
	return PathPods + "/" + url.PathEscape(string(uid)) + "/" + call
}

// Status is the answer of GET PathStatus.
type Status struct {
	Node     string `json:"node"`
	Mode     string `json:"mode,omitempty"`
	Software string `json:"software,omitempty"`

	Epoch        journal.Epoch    `json:"epoch"`
	HeadSequence journal.Sequence `json:"headSequence"`
	Pods         int              `json:"pods"`
	// Pending counts pods whose newest version the API server has not acked,
	// AckedVersionsBehind sums up by how many versions.
	Pending             int    `json:"pending"`
	AckedVersionsBehind uint64 `json:"ackedVersionsBehind"`
	// OldestPending is the time of the oldest version that is not acked.
	OldestPending *time.Time `json:"oldestPending,omitempty"`
	// Failing counts pods whose last request was refused.
	Failing int `json:"failing"`
	// Rejected counts refused updates since the start.
	Rejected     uint64 `json:"rejected"`
	JournalBytes int64  `json:"journalBytes"`
	// LastSyncError is the newest error of talking to the API server; empty if
	// there was none. It may be over: ServerFailing tells.
	LastSyncError     string     `json:"lastSyncError"`
	LastSyncErrorTime *time.Time `json:"lastSyncErrorTime,omitempty"`
	// ServerFailing: the last LIST or WATCH failed, or the server is taken for dead.
	ServerFailing bool `json:"serverFailing"`
	// Degraded: the last write failed. Reads work, writes are tried again.
	Degraded       bool   `json:"degraded"`
	DegradedReason string `json:"degradedReason,omitempty"`

	// Syncing says whether there is an API server to sync with.
	Syncing bool `json:"syncing"`
	// LiveSynced: its pods were listed in full once.
	LiveSynced   bool         `json:"liveSynced"`
	UncleanStart bool         `json:"uncleanStart"`      // the run before this one did not close the journal
	Journal      string       `json:"journal,omitempty"` // file
	Suspect      bool         `json:"suspect,omitempty"` // journal.Info.Suspect
	Events       uint64       `json:"events"`
	FreeBytes    int64        `json:"freeBytes"`
	Started      time.Time    `json:"started"`
	FailingPods  []FailingPod `json:"failingPods,omitempty"`
}

// FailingPod is a pod whose last request was refused.
type FailingPod struct {
	UID       types.UID       `json:"uid"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Version   journal.Version `json:"version"`
	Reason    string          `json:"reason"`
	Message   string          `json:"message,omitempty"`
	Attempts  int             `json:"attempts"`
	Since     time.Time       `json:"since"`
	RetryAt   *time.Time      `json:"retryAt,omitempty"`
}

// The states of a PodRecord.
const (
	StateAcked   = "acked"   // the API server holds the newest version
	StatePending = "pending" // it does not yet
	StateFailing = "failing" // it does not, and refused the last request
)

// PodRecord is what is stored about one pod, its status aside.
type PodRecord struct {
	UID          types.UID        `json:"uid"`
	Namespace    string           `json:"namespace"`
	Name         string           `json:"name"`
	Version      journal.Version  `json:"version"`
	AckedVersion journal.Version  `json:"ackedVersion"`
	Sequence     journal.Sequence `json:"sequence"`
	State        string           `json:"state"`
	LastError    string           `json:"lastError,omitempty"`

	AckedUID     types.UID      `json:"ackedUID,omitempty"` // the mirror's for a static pod
	Phase        v1.PodPhase    `json:"phase,omitempty"`
	Reason       journal.Reason `json:"reason,omitempty"` // of the newest event
	Finished     bool           `json:"finished,omitempty"`
	Time         time.Time      `json:"time"` // of the newest event
	PendingSince *time.Time     `json:"pendingSince,omitempty"`
	Attempts     int            `json:"attempts,omitempty"`
	RetryAt      *time.Time     `json:"retryAt,omitempty"`
}

// PodRecordList is the answer of GET PathPods, by namespace, name and UID.
type PodRecordList struct {
	Pods []PodRecord `json:"pods"`
}

// History is the answer of GET HistoryPath: the pod's events, oldest first.
type History struct {
	UID       types.UID    `json:"uid"`
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Events    []wire.Event `json:"events"`
	// Truncated: there are older events than these.
	Truncated bool `json:"truncated,omitempty"`
}

// ReadinessRequest is the body of POST ReadinessPath.
type ReadinessRequest struct {
	ContainerID string `json:"containerID"` // runtime://id
	Ready       *bool  `json:"ready"`
}

// StartupRequest is the body of POST StartupPath.
type StartupRequest struct {
	ContainerID string `json:"containerID"` // runtime://id
	Started     *bool  `json:"started"`
}

// CallResult is the answer of the calls about one pod.
type CallResult struct {
	UID          types.UID        `json:"uid"` // of the pod the node runs
	Namespace    string           `json:"namespace"`
	Name         string           `json:"name"`
	Outcome      string           `json:"outcome"` // applied or unchanged
	Version      journal.Version  `json:"version"`
	AckedVersion journal.Version  `json:"ackedVersion"`
	Sequence     journal.Sequence `json:"sequence"`
}

// The outcomes in a CallResult.
const (
	OutcomeApplied   = "applied"
	OutcomeUnchanged = "unchanged"
)

// RetainRequest is the body of POST PathRetain. UIDs is required: an empty list
// removes all pods, a missing one is an error.
type RetainRequest struct {
	UIDs *[]types.UID `json:"uids"`
}

// RetainResult is the answer of POST PathRetain.
type RetainResult struct {
	Removed []types.UID `json:"removed"`
}
