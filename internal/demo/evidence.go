// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

// evidence is what a run of the scenario has seen.
type evidence struct {
	accepted   []acceptance                  // answers with 200 before the first SIGKILL
	ackedFirst map[types.UID]journal.Version // acks that were on disk before the network went down

	// After the first SIGKILL.
	disk      onDisk                        // the file, before anybody opened it
	journaled map[statusID]string           // messages of the events that the restarted agent has
	served    map[types.UID]journal.Version // versions that it shows
	outdated  map[string]bool               // names of pods whose status on the server was not the newest in the file
	requests  []fakeapi.Request             // from the return of the network until all was acked
	converged time.Duration                 // how long that took; 0: it didn't
	final     []string                      // pods whose status on the server is not the last accepted one

	// Around the second SIGKILL, when nothing was pending.
	ackedBefore  map[types.UID]journal.Version // as the agent showed them
	ackedOnDisk  map[types.UID]journal.Version // in the file, after its end
	ackedAfter   map[types.UID]journal.Version // as the next agent shows them, without network
	behindAfter  uint64                        // ackedVersionsBehind at the same time
	idleRequests []fakeapi.Request             // all of the next agent, with network, but for one pod's new status
}

// statusID is one version of one pod.
type statusID struct {
	uid     types.UID
	version journal.Version
}

// onDisk is what a journal file holds.
type onDisk struct {
	versions map[types.UID]journal.Version
	acked    map[types.UID]journal.Version
	statuses map[types.UID]*v1.PodStatus // newest
}
