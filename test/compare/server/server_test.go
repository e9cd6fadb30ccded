// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/test/compare/report"
)

// patience bounds each test.
const patience = time.Minute

// fakePlane is a plane whose server is in this process.
func fakePlane(t *testing.T) *plane {
	t.Helper()
	silence()
	api, err := fakeapi.Listen(fakeapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &plane{dir: t.TempDir(), config: api.RESTConfig()}
	p.config.QPS = -1
	if p.admin, err = kubernetes.NewForConfig(p.config); err != nil {
		t.Fatal(err)
	}
	return p
}

func testWorld(t *testing.T, pods int) (context.Context, *world) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w, err := newWorld(ctx, fakePlane(t), pods)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return ctx, w
}

func wantRequests(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: got requests %v, want %v", what, got, want)
	}
}

// TestBurstAndRestarts counts what each side sends.
func TestBurstAndRestarts(t *testing.T) {
	t.Parallel()
	const pods = 20
	with := func(counts, more map[string]int) map[string]int {
		all := maps.Clone(counts)
		maps.Copy(all, more)
		return all
	}
	for which, each := range map[side]map[string]int{
		stock: {"GET": pods},
		ours:  {"LIST": 1, "WATCH": 1},
	} {
		t.Run(string(which), func(t *testing.T) {
			ctx, w := testWorld(t, pods)
			r, err := w.burst(ctx, which, unlimited)
			if err != nil {
				t.Fatal(err)
			}
			wantRequests(t, "burst", r.requests, with(each, map[string]int{"PATCH": pods}))
			if r.seconds <= 0 {
				t.Errorf("burst: got %v seconds", r.seconds)
			}
			const settle = 300 * time.Millisecond
			if r, err = w.restart(ctx, which, unlimited, settle, same(0)); err != nil {
				t.Fatal(err)
			}
			wantRequests(t, "restart", r.requests, each)
			for _, p := range w.pods {
				// A manager without memory takes the times of conditions from here.
				if p.Status.Phase != v1.PodRunning {
					t.Fatalf("after the restart: pod %s is known as %q, want it as the server has it", p.Name, p.Status.Phase)
				}
			}
			first := func(i int) int32 { return int32(max(0, 2-i)) } // pods 0 and 1 have changed
			if r, err = w.restart(ctx, which, unlimited, settle, first); err != nil {
				t.Fatal(err)
			}
			wantRequests(t, "restart with two changes", r.requests, with(each, map[string]int{"PATCH": 2}))
		})
	}
}

// TestOutage: both sides end as they should, and nobody goes back.
func TestOutage(t *testing.T) {
	t.Parallel()
	for _, which := range sides {
		t.Run(string(which), func(t *testing.T) {
			t.Parallel() // the stock manager may wait for its next pass, up to 10 s
			ctx, w := testWorld(t, 5)
			o, err := w.outage(ctx, which, unlimited, 20, 500*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if o.back != 0 {
				t.Errorf("got %d steps back to an older status, want 0", o.back)
			}
			if o.during["GET"]+o.during["PATCH"] == 0 {
				t.Errorf("got no request while the server was away: %v", o.during)
			}
			if o.after["PATCH"] < 5 {
				t.Errorf("got requests %v after the outage, want a PATCH per pod at least", o.after)
			}
		})
	}
}

// TestStream_Hang: with ours the other pods' statuses arrive; with the stock manager,
// which sends one after another, they do not.
func TestStream_Hang(t *testing.T) {
	t.Parallel()
	for which, arrive := range map[side]bool{stock: false, ours: true} {
		t.Run(string(which), func(t *testing.T) {
			ctx, w := testWorld(t, 5)
			f := stream{perSecond: 50, lasts: time.Second, patience: time.Second}
			if arrive {
				f.patience = patience / 2
			}
			got, err := w.stream(ctx, which, unlimited, f, true)
			if err != nil {
				t.Fatal(err)
			}
			if got.changes == 0 || (got.missing == 0) != arrive {
				t.Errorf("got %d of %d changes missing, want that they arrive: %v", got.missing, got.changes, arrive)
			}
		})
	}
}

// TestCompare_Replaced: a version that was never shown by itself was visible with
// the next one.
func TestCompare_Replaced(t *testing.T) {
	start := time.Now()
	w := &world{
		shown: map[types.UID]int32{"a": 3},
		at:    map[seen]time.Time{{"a", 1}: start.Add(time.Second), {"a", 3}: start.Add(3 * time.Second)},
	}
	took, missing := w.compare(map[seen]time.Time{{"a", 1}: start, {"a", 2}: start, {"a", 4}: start})
	if missing != 1 {
		t.Errorf("got %d missing, want version 4 alone", missing)
	}
	if got := report.Quantile(took, 1); len(took) != 2 || got != 3 {
		t.Errorf("got %v, want 1 and 3 seconds", took)
	}
}

// TestRun_Reports runs all scenarios and looks at the tables.
func TestRun_Reports(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var log bytes.Buffer
	r := report.New(nil)
	m := &run{plane: fakePlane(t), report: r, Options: Options{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Rounds: 1, Pods: []int{10}, Unlimited: true, Settle: 200 * time.Millisecond,
		OutagePods: 5, Changes: 10, Away: 100 * time.Millisecond, StreamPods: 5, PerSecond: 20, StreamTime: 200 * time.Millisecond,
	}}
	if err := m.bursts(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.outages(ctx); err != nil {
		t.Fatal(err)
	}
	if len(r.Sections) != 2 || len(r.Sections[0].Rows) != 6 || len(r.Sections[1].Rows) != 2 {
		t.Errorf("got %+v, want two tables of six and two rows", r.Sections)
	}
	if len(r.Targets) != 10 {
		t.Errorf("got %d targets, want 7 and 3", len(r.Targets))
	}
	for _, s := range r.Sections[0].Rows {
		if ratio := s.Values[5]; !(ratio > 0) {
			t.Errorf("%s: got ratio %v", s.Name, ratio)
		}
	}
}
