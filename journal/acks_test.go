// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

func TestAcks(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"), set("a", "2"), set("b", "1"), set("c", "1"))
	now := time.Now().UTC().Truncate(0)
	put := func(a Ack) { a.Time = now; j.PutAck(a) }
	put(Ack{UID: "a", LiveUID: "a", Version: 2})
	put(Ack{UID: "a", LiveUID: "a", Version: 1})        // never down
	put(Ack{UID: "b", LiveUID: "mirror-1", Version: 1}) // static pod
	put(Ack{UID: "c", LiveUID: "c", Version: 9})        // above its version
	put(Ack{UID: "nobody", LiveUID: "nobody", Version: 1})
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, j)
	got, err := j.Acks()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["a"].Version != 2 || got["b"].LiveUID != "mirror-1" || !got["a"].Time.Equal(now) {
		t.Errorf("acks %+v", got)
	}
	// A recreated mirror starts unacked, so its first ack may be lower.
	mustAppend(t, j, set("b", "2"), set("b", "3"))
	put(Ack{UID: "b", LiveUID: "mirror-1", Version: 3})
	put(Ack{UID: "b", LiveUID: "mirror-2", Version: 2})
	if got, _ := j.Acks(); got["b"].Version != 2 || got["b"].LiveUID != "mirror-2" {
		t.Errorf("ack of the new mirror: %+v", got["b"])
	}
	j.ForgetAck("a")
	mustAppend(t, j, removed("b"))
	if got, _ := reopen(t, j).Acks(); len(got) != 0 {
		t.Errorf("acks after forget and remove: %+v", got)
	}
}

// TestAckRacesWithRemoval: no ack outlives its pod, which verification at the
// end of the test would find.
func TestAckRacesWithRemoval(t *testing.T) {
	j := openNewIn(t, fastDir(t), Options{})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 1})
				runtime.Gosched()
			}
		}
	})
	for i := range 300 {
		if i > 0 {
			j.PutAck(Ack{UID: "a", LiveUID: "a", Version: Version(2*i + 1)})
		}
		mustAppend(t, j, set("a", "1"))
		mustAppend(t, j, removed("a"))
		if acks, _ := j.Acks(); len(acks) != 0 {
			t.Fatalf("round %d: acks %v of a removed pod", i, acks)
		}
	}
	close(stop)
	wg.Wait()
}

// TestAcksRideAlong: acks that have waited go out with events, fresh ones wait for
// more, so that not every commit touches their pages.
func TestAcksRideAlong(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 1})
	j.acks.since = time.Now().Add(time.Hour) // however slow this machine is
	mustAppend(t, j, set("b", "1"))
	if !j.acks.anyDirty() {
		t.Error("a fresh ack went out with the commit")
	}
	j.acks.since = time.Now().Add(-ackRide)
	mustAppend(t, j, set("b", "2"))
	if j.acks.anyDirty() {
		t.Error("the ack did not go out with the commit")
	}
}

// C48: repeated acks and flushes without news touch nothing.
func TestC48_IdleMeansNoWrites(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 1})
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(j.path)
	stat, _ := os.Stat(j.path)
	for range 100 {
		j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 1})
		j.ForgetAck("nobody")
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := os.ReadFile(j.path)
	if now, _ := os.Stat(j.path); string(before) != string(after) || !now.ModTime().Equal(stat.ModTime()) {
		t.Error("the file changed")
	}
}

// TestG2_AcksAreClamped: acks above their version, or of nobody, can only come
// from a file that was changed; they are dropped at open.
func TestG2_AcksAreClamped(t *testing.T) {
	j := openNew(t, Options{})
	mustAppend(t, j, set("a", "1"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(j.path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		s, b := newSealer(), tx.Bucket(bucketAcks)
		for _, a := range []Ack{{UID: "a", LiveUID: "a", Version: 7}, {UID: "x", LiveUID: "x", Version: 1}} {
			if err := b.Put([]byte(a.UID), a.encode(s)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	j = open(t, j.path, Options{})
	if got, _ := j.Acks(); len(got) != 0 {
		t.Errorf("acks %+v", got)
	}
}
