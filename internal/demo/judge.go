// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// Report is the outcome of a demo.
type Report struct {
	Accepted  int           // statuses that were answered with 200
	Journaled int           // statuses in the journal after the crash
	Lost      int           // accepted, but not in the journal
	Repeated  int           // versions that were given to two different statuses
	Resent    int           // PATCHes that told the server what it had acked
	AcksLost  int           // pods whose ack was forgotten by a crash
	Differing int           // pods whose status on the server is not the last accepted one
	Converged time.Duration // from the return of the network; 0: not at all

	Requests map[fakeapi.Verb]int // after the crash
	Patched  int                  // pods that had something new then
	Idle     map[fakeapi.Verb]int // after a crash with nothing pending

	Broken  []string // promises that did not hold
	DataDir string   // empty if it is gone
}

// judge decides what the evidence means.
func judge(e evidence) *Report {
	r := &Report{
		Accepted: len(e.accepted), Journaled: len(e.journaled), Converged: e.converged,
		Requests: verbs(e.requests), Patched: len(e.outdated), Idle: verbs(e.idleRequests), Differing: len(e.final),
	}
	r.countLost(e)
	r.countResent(e)
	r.countAcksLost(e)

	expect := func(ok bool, format string, args ...any) {
		if !ok {
			r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
		}
	}
	expect(r.Accepted > 0, "no status was accepted")
	expect(r.Lost == 0, "%d accepted statuses are lost", r.Lost)
	expect(r.Repeated == 0, "%d versions were given to two statuses", r.Repeated)
	expect(r.Resent == 0, "%d statuses were sent again although acked", r.Resent)
	expect(r.AcksLost == 0, "the acks of %d pods did not survive", r.AcksLost)
	expect(e.behindAfter == 0, "%d acked versions behind after a crash with nothing pending", e.behindAfter)
	expect(r.Converged > 0, "the API server did not get all statuses")
	expect(r.Differing == 0, "%d pods differ on the API server: %v", r.Differing, e.final)
	expectVerbs := func(when string, got map[fakeapi.Verb]int, patches int) {
		want := map[fakeapi.Verb]int{fakeapi.List: 1, fakeapi.Watch: 1, fakeapi.Patch: patches}
		if patches == 0 {
			delete(want, fakeapi.Patch)
		}
		expect(maps.Equal(got, want), "requests %s: %s, want %s", when, verbText(got), verbText(want))
	}
	expectVerbs("after the crash", r.Requests, r.Patched)
	expectVerbs("after a crash with nothing pending", r.Idle, 0)
	return r
}

// countLost compares what was accepted with what the file and the next agent have.
func (r *Report) countLost(e evidence) {
	given := make(map[statusID]string, len(e.accepted))
	for _, a := range e.accepted {
		id := statusID{a.uid, a.version}
		if before, ok := given[id]; ok && before != a.message {
			r.Repeated++
		}
		given[id] = a.message
		event, ok := e.journaled[id]
		switch {
		case ok && event != a.message:
			r.Repeated++
		case !ok, e.served[a.uid] < a.version, e.disk.versions[a.uid] < a.version:
			r.Lost++
		}
	}
}

// countResent counts the PATCHes that the server did not need: of pods whose
// newest version it had acked before the crash and still had, and all but the
// first successful one of the other pods.
func (r *Report) countResent(e evidence) {
	done := make(map[string]bool)
	for _, q := range e.requests {
		if q.Verb != fakeapi.Patch {
			continue
		}
		if !e.outdated[q.Name] || done[q.Name] {
			r.Resent++
		}
		done[q.Name] = done[q.Name] || q.Code == 200
	}
	for _, q := range e.idleRequests {
		if q.Verb == fakeapi.Patch {
			r.Resent++
		}
	}
}

// countAcksLost compares the acks that an agent had with what is left of them.
func (r *Report) countAcksLost(e evidence) {
	lost := make(map[types.UID]bool)
	for uid, acked := range e.ackedFirst {
		lost[uid] = e.disk.acked[uid] < acked
	}
	for uid, acked := range e.ackedBefore {
		lost[uid] = lost[uid] || e.ackedOnDisk[uid] < acked || e.ackedAfter[uid] < acked
	}
	for _, is := range lost {
		if is {
			r.AcksLost++
		}
	}
}

// verbs counts requests about pods. Further pages belong to the LIST they continue.
func verbs(requests []fakeapi.Request) map[fakeapi.Verb]int {
	counts := make(map[fakeapi.Verb]int)
	for _, q := range requests {
		if q.Verb != fakeapi.Discovery && !strings.Contains(q.Query, "continue=") {
			counts[q.Verb]++
		}
	}
	return counts
}

// verbText lists counts, and those that matter when they are zero.
func verbText(counts map[fakeapi.Verb]int) string {
	shown := map[fakeapi.Verb]int{fakeapi.List: 0, fakeapi.Watch: 0, fakeapi.Get: 0, fakeapi.Patch: 0}
	maps.Copy(shown, counts)
	order := []fakeapi.Verb{fakeapi.List, fakeapi.Watch, fakeapi.Get, fakeapi.Patch}
	text := ""
	for _, verb := range slices.SortedFunc(maps.Keys(shown), func(a, b fakeapi.Verb) int {
		return cmp.Or(cmp.Compare(rank(order, a), rank(order, b)), cmp.Compare(a, b))
	}) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", shown[verb], verb)
	}
	return text
}

func rank(order []fakeapi.Verb, verb fakeapi.Verb) int {
	if i := slices.Index(order, verb); i >= 0 {
		return i
	}
	return len(order)
}
