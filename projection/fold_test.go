// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

// event of pod uid with the version, at the sequence of the same number of seconds.
func event(kind journal.Kind, uid types.UID, seq journal.Sequence, version journal.Version, message string) journal.Event {
	e := journal.Event{
		Kind: kind, Sequence: seq, Epoch: 1, Time: at(int(seq)), Version: version, Incarnation: 1,
		UID: uid, Namespace: "default", Name: "pod-" + string(uid), Reason: journal.ReasonSet,
	}
	if kind == journal.KindSet || kind == journal.KindFinished {
		encoded, err := podstatus.Encode(&v1.PodStatus{Phase: v1.PodRunning, Message: message})
		if err != nil {
			panic(err)
		}
		e.ContentType, e.Status = journal.ContentTypeProtobuf, encoded
	}
	return e
}

func set(uid types.UID, seq journal.Sequence, version journal.Version, message string) journal.Event {
	return event(journal.KindSet, uid, seq, version, message)
}

func TestFold(t *testing.T) {
	old := &Entry{
		UID: "a", Namespace: "default", Name: "pod-a", Version: 3, Incarnation: 1, Sequence: 7, Epoch: 1, Time: at(7),
		Reason: journal.ReasonSet, Status: &v1.PodStatus{Message: "old"}, Acked: 3, AckedUID: "a",
	}
	with := func(change func(e *Entry)) *Entry {
		e := *old
		change(&e)
		return &e
	}
	following := func(change func(e *Entry)) *Entry {
		return with(func(e *Entry) {
			e.Version, e.Sequence, e.Time, e.PendingSince = 4, 9, at(9), at(9)
			e.Status = &v1.PodStatus{Phase: v1.PodRunning, Message: "new"}
			change(e)
		})
	}
	edited := func(change func(e *journal.Event)) journal.Event {
		e := set("a", 9, 4, "new")
		change(&e)
		return e
	}
	payload := &v1.PodStatus{Message: "payload"}
	tests := []struct {
		name string
		prev *Entry
		e    journal.Event
		want *Entry
		err  error
	}{
		{"first", nil, set("a", 9, 4, "new"), following(func(e *Entry) { e.Acked, e.AckedUID = 0, "" }), nil},
		{"next keeps the ack", old, set("a", 9, 4, "new"), following(func(*Entry) {}), nil},
		{"semantics 54: pending since the oldest version that is not acked",
			with(func(e *Entry) { e.Acked, e.PendingSince = 1, at(5) }), set("a", 9, 4, "new"),
			following(func(e *Entry) { e.Acked, e.PendingSince = 1, at(5) }), nil},
		{"payload is taken", old, edited(func(e *journal.Event) { e.Payload, e.Status = payload, []byte("garbage") }),
			following(func(e *Entry) { e.Status = payload }), nil},
		{"aux and reason", old, edited(func(e *journal.Event) { e.Aux, e.Reason = []byte{1}, journal.ReasonResize }),
			following(func(e *Entry) { e.Aux, e.Reason = []byte{1}, journal.ReasonResize }), nil},
		{"finished by kind", old, edited(func(e *journal.Event) { e.Kind = journal.KindFinished }),
			following(func(e *Entry) { e.Finished = true }), nil},
		{"finished by mark", old, edited(func(e *journal.Event) { e.Finished = true }),
			following(func(e *Entry) { e.Finished = true }), nil},
		{"semantics 47: finished stays", with(func(e *Entry) { e.Finished = true }), set("a", 9, 4, "new"),
			following(func(e *Entry) { e.Finished = true }), nil},
		{"new incarnation inherits nothing", with(func(e *Entry) { e.Finished = true }),
			edited(func(e *journal.Event) { e.Incarnation = 2 }),
			following(func(e *Entry) { e.Incarnation, e.Acked, e.AckedUID = 2, 0, "" }), nil},
		{"removed", old, event(journal.KindRemoved, "a", 9, 4, ""), nil, nil},
		{"removed before it was there", nil, event(journal.KindRemoved, "a", 9, 4, ""), nil, nil},
		{"same version again", old, set("a", 9, 3, "new"), old, ErrOutOfOrder},
		{"removed with an old version", old, event(journal.KindRemoved, "a", 9, 3, ""), old, ErrOutOfOrder},
		{"garbled status", old, edited(func(e *journal.Event) { e.Status = []byte{0xff} }), old, podstatus.ErrMalformed},
		{"other encoding", old, edited(func(e *journal.Event) { e.ContentType = "json" }), old, ErrContentType},
		{"no UID", nil, edited(func(e *journal.Event) { e.UID = "" }), nil, ErrNoUID},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := fold(tt.prev, tt.e)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if e, ok := errors.AsType[*EventError](err); err != nil && (!ok || e.Sequence != 9 || e.UID != tt.e.UID) {
				t.Errorf("error %v does not say which event", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFoldAck(t *testing.T) {
	entry := func(version, acked journal.Version, uid types.UID, since time.Time) *Entry {
		return &Entry{UID: "a", Version: version, Time: at(20), Acked: acked, AckedUID: uid, PendingSince: since}
	}
	ack := func(uid types.UID, version journal.Version) journal.Ack {
		return journal.Ack{UID: "a", LiveUID: uid, Version: version, Time: at(30)}
	}
	none := time.Time{}
	tests := []struct {
		name string
		prev *Entry
		ack  journal.Ack
		want *Entry
	}{
		{"first", entry(5, 0, "", at(10)), ack("a", 5), entry(5, 5, "a", none)},
		{"semantics 95: cleared when all is acked", entry(5, 3, "a", at(10)), ack("a", 5), entry(5, 5, "a", none)},
		{"an older version of several", entry(5, 1, "a", at(10)), ack("a", 3), entry(5, 3, "a", at(20))},
		{"G2: never above the version", entry(5, 3, "a", at(10)), ack("a", 9), entry(5, 5, "a", none)},
		{"G2: never down", entry(5, 4, "a", at(10)), ack("a", 2), entry(5, 4, "a", at(10))},
		{"semantics 88: another object on the server", entry(5, 5, "m1", none), ack("m2", 2), entry(5, 2, "m2", at(30))},
		{"another object, all acked", entry(5, 5, "m1", none), ack("m2", 5), entry(5, 5, "m2", none)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := *tt.prev
			got := foldAck(tt.prev, tt.ack)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&before, tt.prev); diff != "" {
				t.Errorf("the old entry changed:\n%s", diff)
			}
		})
	}
}

func TestFoldNoAck(t *testing.T) {
	acked := &Entry{Version: 5, Acked: 5, AckedUID: "a"}
	want := &Entry{Version: 5, PendingSince: at(1)}
	if diff := cmp.Diff(want, foldNoAck(acked, at(1))); diff != "" {
		t.Errorf("acked (-want +got):\n%s", diff)
	}
	behind := &Entry{Version: 5, Acked: 3, AckedUID: "a", PendingSince: at(0)}
	want = &Entry{Version: 5, PendingSince: at(0)}
	if diff := cmp.Diff(want, foldNoAck(behind, at(1))); diff != "" {
		t.Errorf("behind (-want +got):\n%s", diff)
	}
	if got := foldNoAck(want, at(2)); got != want {
		t.Error("an entry without ack was replaced")
	}
}
