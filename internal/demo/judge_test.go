// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

type versions = map[types.UID]journal.Version

func request(verb fakeapi.Verb, name string) fakeapi.Request {
	return fakeapi.Request{Verb: verb, Name: name, Code: 200}
}

// goodEvidence is of two pods: a changed during the outage, b did not.
func goodEvidence() evidence {
	return evidence{
		accepted:    []acceptance{{"a", 1, "change 1"}, {"b", 1, "change 1"}, {"a", 2, "change 2"}},
		ackedFirst:  versions{"a": 1, "b": 1},
		disk:        onDisk{versions: versions{"a": 3, "b": 1}, acked: versions{"a": 1, "b": 1}},
		journaled:   map[statusID]string{{"a", 1}: "change 1", {"b", 1}: "change 1", {"a", 2}: "change 2", {"a", 3}: "change 3"},
		served:      versions{"a": 3, "b": 1},
		outdated:    map[string]bool{"web-a": true},
		requests:    []fakeapi.Request{request(fakeapi.Discovery, ""), request(fakeapi.List, ""), request(fakeapi.Watch, ""), request(fakeapi.Patch, "web-a")},
		converged:   time.Second,
		ackedBefore: versions{"a": 3, "b": 1}, ackedOnDisk: versions{"a": 3, "b": 1}, ackedAfter: versions{"a": 3, "b": 1},
		idleRequests: []fakeapi.Request{request(fakeapi.List, ""), request(fakeapi.Watch, "")},
	}
}

func TestJudge_AllHeld(t *testing.T) {
	r := judge(goodEvidence())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if r.Accepted != 3 || r.Journaled != 4 || r.Patched != 1 {
		t.Errorf("got %+v, want 3 accepted, 4 journalled, 1 patched", r)
	}
}

// TestJudge_Broken breaks one promise at a time.
func TestJudge_Broken(t *testing.T) {
	tests := []struct {
		name   string
		damage func(e *evidence)
		want   string
	}{
		{"nothing was written", func(e *evidence) { e.accepted = nil }, "no status was accepted"},
		{"event is not in the journal", func(e *evidence) { delete(e.journaled, statusID{"a", 2}) }, "1 accepted statuses are lost"},
		{"agent shows an older one", func(e *evidence) { e.served["a"] = 1 }, "1 accepted statuses are lost"},
		{"file has an older one", func(e *evidence) { e.disk.versions["a"] = 1 }, "1 accepted statuses are lost"},
		{"pod is gone", func(e *evidence) { delete(e.served, "b") }, "1 accepted statuses are lost"},
		{"other content under the version", func(e *evidence) { e.journaled[statusID{"a", 2}] = "change 9" }, "1 versions were given to two"},
		{"version twice", func(e *evidence) { e.accepted = append(e.accepted, acceptance{"b", 1, "change 2"}) }, "versions were given to two"},
		{"patch of an unchanged pod", func(e *evidence) { e.requests = append(e.requests, request(fakeapi.Patch, "web-b")) }, "1 statuses were sent again"},
		{"patch twice", func(e *evidence) { e.requests = append(e.requests, request(fakeapi.Patch, "web-a")) }, "1 statuses were sent again"},
		{"patch without news", func(e *evidence) { e.idleRequests = append(e.idleRequests, request(fakeapi.Patch, "web-a")) }, "1 statuses were sent again"},
		{"GET after the crash", func(e *evidence) { e.requests = append(e.requests, request(fakeapi.Get, "web-a")) }, "requests after the crash: 1 LIST, 1 WATCH, 1 GET, 1 PATCH, want 1 LIST, 1 WATCH, 0 GET, 1 PATCH"},
		{"GET without news", func(e *evidence) { e.idleRequests = append(e.idleRequests, request(fakeapi.Get, "web-a")) }, "requests after a crash with nothing pending: 1 LIST, 1 WATCH, 1 GET"},
		{"second LIST", func(e *evidence) { e.requests = append(e.requests, request(fakeapi.List, "")) }, "requests after the crash: 2 LIST"},
		{"changed pod was not sent", func(e *evidence) { e.requests = e.requests[:3] }, "requests after the crash"},
		{"acks are not stored", func(e *evidence) { e.ackedOnDisk, e.ackedAfter = nil, nil }, "the acks of 2 pods did not survive"},
		{"acks are not stored before the outage", func(e *evidence) { e.disk.acked = nil }, "the acks of 2 pods did not survive"},
		{"acks are stored but not read", func(e *evidence) { e.ackedAfter = nil }, "the acks of 2 pods did not survive"},
		{"acks are behind", func(e *evidence) { e.behindAfter = 1 }, "1 acked versions behind"},
		{"never converged", func(e *evidence) { e.converged = 0 }, "did not get all"},
		{"server has something else", func(e *evidence) { e.final = []string{"web-a"} }, "1 pods differ on the API server: [web-a]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := goodEvidence()
			tt.damage(&e)
			err := judge(e).Err()
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestJudge_SecondTry doesn't count a PATCH again that the server did not take, or
// a further page of a LIST.
func TestJudge_SecondTry(t *testing.T) {
	e := goodEvidence()
	failed := request(fakeapi.Patch, "web-a")
	failed.Code = 503
	e.requests = append([]fakeapi.Request{failed, {Verb: fakeapi.List, Query: "limit=500&continue=x"}}, e.requests...)
	r := judge(e)
	if r.Resent != 0 || r.Requests[fakeapi.List] != 1 {
		t.Errorf("got %d re-sent and %d LISTs, want 0 and 1", r.Resent, r.Requests[fakeapi.List])
	}
}
