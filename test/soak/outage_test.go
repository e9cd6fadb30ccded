// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

const (
	outageDays  = 30
	outageSlots = 60
	// changeEvery is how often one of the node's pods changes.
	changeEvery = 10 * time.Second
	// endEvery is how many changes there are for each pod that ends.
	endEvery = 350
	// keepEnded is how many pods that have ended the node remembers, as a kubelet
	// does until the API server has heard of them. Older ones are dropped.
	keepEnded = 150
)

// TestG7_ThirtyDaysOfOutage cuts the API server off for 30 days. Pods change every
// few seconds, end, and are replaced; the agent is restarted now and then; nothing
// is acked. The file stays bounded, the newest status of each pod is kept, and when
// the server is back it gets exactly that, once.
func TestG7_ThirtyDaysOfOutage(t *testing.T) {
	began := time.Now()
	dir := dir(t)
	synctest.Test(t, func(t *testing.T) { outage(t, dir) })
	t.Logf("all that in %v", time.Since(began).Round(time.Second))
	verify(t, dir)
}

func outage(t *testing.T, dir string) {
	api, err := fakeapi.ListenInMemory(fakeapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	slots := make([]*slot, outageSlots)
	for i := range slots {
		slots[i] = newSlot(i)
	}
	on(t, api, slots...)
	s := open(t, dir, api, 0, journal.Retention{})
	defer func() { s.stop() }()
	for _, p := range slots {
		if err := s.set(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := s.Status().Pending; n != 0 {
		t.Fatalf("%d pods are pending before the outage", n)
	}

	api.NetworkDown()
	api.ResetRequests()
	begin := time.Now()
	random := rand.New(rand.NewPCG(30, 30))
	var ended []*slot // oldest first
	changes, ends, drops, restarts := 0, 0, 0, 0
	var days []sample
	restart := func() {
		s.holds(slots)
		s.stop()
		s = open(t, dir, api, 0, journal.Retention{})
		restarts++
	}
	for day := range outageDays {
		for n := range int(24 * time.Hour / changeEvery) {
			if day == 0 && n == 1000 {
				restart() // from now on nobody knows what the server has
			}
			time.Sleep(changeEvery)
			p := slots[random.IntN(len(slots))]
			changes++
			if changes%endEvery != 0 {
				if err := s.set(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				continue
			}
			ends++
			if err := s.finish(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			gone := *p
			ended = append(ended, &gone)
			p.renew()
			if len(ended) > keepEnded {
				if err := s.Remove(t.Context(), ended[0].pod.UID, journal.ReasonOrphaned); err != nil {
					t.Fatal(err)
				}
				ended = ended[1:]
				drops++
			}
		}
		days = append(days, sample{head: s.stats().Head, stats: s.stats()})
		if day%10 == 4 {
			restart()
		}
	}
	lasted := time.Since(begin)
	known := append(ended, slots...)
	s.holds(known)
	if acks, err := s.Journal().Acks(); err != nil || len(acks) > len(slots) {
		t.Errorf("%d acks (%v) after an outage in which nothing was acked", len(acks), err)
	}
	pending := s.Status().Pending
	checkOutageFile(t, days)

	// The server has been told of all pods meanwhile, by a scheduler that could
	// reach it.
	for _, p := range known {
		if _, ok := api.Pod(namespace, p.pod.Name); !ok {
			on(t, api, p)
		}
	}
	api.ResetRequests()
	if err := api.NetworkUp(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	for s.Status().Pending > 0 && time.Since(back) < time.Hour {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
	}
	caught := time.Since(back)
	sent := sentMessages(t, api)
	for _, p := range known {
		live, ok := api.Pod(namespace, p.pod.Name)
		if p.newest == "" {
			continue // replaced a moment ago, and not written to since
		}
		if !ok || live.Status.Message != p.newest {
			t.Errorf("%s: the server has %q, the newest is %q", p.pod.Name, live.Status.Message, p.newest)
		}
		if got := sent[p.pod.UID]; len(got) != 1 || got[0] != p.newest {
			t.Errorf("%s: sent was %q, the newest is %q", p.pod.Name, got, p.newest)
		}
		delete(sent, p.pod.UID)
	}
	if len(sent) > 0 {
		t.Errorf("sent about nobody's pods: %v", sent)
	}
	if list, watch, get := api.Count(fakeapi.List), api.Count(fakeapi.Watch), api.Count(fakeapi.Get); list != 1 || watch != 1 || get != 0 {
		t.Errorf("%d LIST, %d WATCH and %d GET, want 1, 1 and 0", list, watch, get)
	}
	t.Logf("%v without the API server: %s changes, %d pods ended, %d of them dropped, %d restarts\n%s\nthen %d pods pending, each sent once with its newest status within %v; 0 lost",
		lasted.Round(time.Hour), commas(uint64(changes)), ends, drops, restarts, table(days), pending, caught.Round(time.Second))
}

// checkOutageFile wants the file of the last day to be as that of the tenth: the
// node has as many pods that ended as it remembers after six.
func checkOutageFile(t *testing.T, days []sample) {
	t.Helper()
	early, last := days[9].stats, days[len(days)-1].stats
	if last.FileBytes > early.FileBytes+early.FileBytes/10 {
		t.Errorf("%d bytes after ten days, %d at the end: it grows with the outage", early.FileBytes, last.FileBytes)
	}
	for _, d := range days[2:] {
		if d.stats.FileBytes > fileFactorOne*int64(d.stats.EventBytes) {
			t.Errorf("at %d the file has %d bytes, %d are live", d.head, d.stats.FileBytes, d.stats.EventBytes)
		}
	}
}

// sentMessages are the messages in all PATCHes, by pod.
func sentMessages(t *testing.T, api *fakeapi.Server) map[types.UID][]string {
	t.Helper()
	if api.Dropped() > 0 {
		t.Fatalf("%d requests were not remembered", api.Dropped())
	}
	sent := map[types.UID][]string{}
	for _, r := range api.Requests(fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}) {
		var patch v1.Pod
		if err := json.Unmarshal(r.Body, &patch); err != nil {
			t.Fatalf("PATCH %s: %v", r.Path, err)
		}
		if patch.UID == "" || !strings.HasSuffix(r.Path, "/status") {
			t.Errorf("PATCH %s of %q", r.Path, patch.UID)
		}
		sent[patch.UID] = append(sent[patch.UID], patch.Status.Message)
	}
	return sent
}
