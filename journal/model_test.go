// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// modelPod is all that the model knows of a UID.
type modelPod struct {
	version     Version
	incarnation Incarnation
	status      string
	live        bool
	finished    bool
	acked       Version
}

// TestG2_Model runs random calls, crashes and reopens against a map.
func TestG2_Model(t *testing.T) {
	root := fastDir(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		path := filepath.Join(dir, FileName)
		retention := Retention{MaxEvents: rapid.IntRange(1, 60).Draw(rt, "limit")}
		j, err := Open(path, Options{Retention: retention})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { j.Close() }()
		model := map[types.UID]*modelPod{}
		head := Sequence(1)
		uid := rapid.SampledFrom([]types.UID{"a", "b", "c", "d", "e", "f"})
		pod := func(u types.UID) *modelPod {
			if model[u] == nil {
				model[u] = &modelPod{}
			}
			return model[u]
		}
		check := func(got []Event, err error, u types.UID) {
			p := pod(u)
			head++
			if err != nil {
				rt.Fatal(err)
			}
			if e := got[0]; e.Version != p.version || e.Sequence != head || e.Incarnation != p.incarnation || e.Finished != p.finished {
				rt.Fatalf("event %+v, model %+v at %d", e, p, head)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				u, status := uid.Draw(rt, "uid"), rapid.String().Draw(rt, "status")
				p := pod(u)
				p.version++
				if !p.live {
					p.incarnation, p.finished, p.acked = p.incarnation+1, false, 0
				}
				p.live, p.status = true, status
				got, err := j.Append(t.Context(), set(u, status))
				check(got, err, u)
			},
			"finish or remove": func(rt *rapid.T) {
				u, remove := uid.Draw(rt, "uid"), rapid.Bool().Draw(rt, "remove")
				p := pod(u)
				e := finished(u, p.status)
				if remove {
					e = removed(u)
				}
				got, err := j.Append(t.Context(), e)
				if !p.live {
					if !errors.Is(err, ErrNoPod) {
						rt.Fatalf("got %v", err)
					}
					return
				}
				p.version++
				p.live, p.finished = !remove, p.finished || !remove
				if remove {
					p.acked = 0
				}
				check(got, err, u)
			},
			"ack": func(rt *rapid.T) {
				u := uid.Draw(rt, "uid")
				p := pod(u)
				v := Version(rapid.Uint64Range(1, uint64(p.version)+2).Draw(rt, "version"))
				j.PutAck(Ack{UID: u, LiveUID: u, Version: v})
				if p.live && v <= p.version {
					p.acked = max(p.acked, v)
				}
			},
			"reopen": func(rt *rapid.T) {
				if err := j.Close(); err != nil {
					rt.Fatal(err)
				}
				if j, err = Open(path, Options{Retention: retention}); err != nil {
					rt.Fatal(err)
				}
				head++
			},
			"crash": func(rt *rapid.T) {
				if err := j.Flush(t.Context()); err != nil {
					rt.Fatal(err)
				}
				b, err := os.ReadFile(path)
				if err != nil {
					rt.Fatal(err)
				}
				j.Close()
				if err := os.WriteFile(path, b, 0o600); err != nil {
					rt.Fatal(err)
				}
				if j, err = Open(path, Options{Retention: retention}); err != nil {
					rt.Fatal(err)
				}
				head++
			},
			"": func(rt *rapid.T) { compare(rt, j, model, head) },
		})
	})
}

func compare(rt *rapid.T, j *Journal, model map[types.UID]*modelPod, head Sequence) {
	if got, _ := j.Head(); got != head {
		rt.Fatalf("head %d, want %d", got, head)
	}
	got := map[types.UID]Event{}
	for e, err := range j.Newest() {
		if err != nil {
			rt.Fatal(err)
		}
		got[e.UID] = e
	}
	acks, err := j.Acks()
	if err != nil {
		rt.Fatal(err)
	}
	for _, u := range slices.Sorted(maps.Keys(model)) {
		p, e := model[u], got[u]
		if p.version == 0 {
			if e.Version != 0 {
				rt.Fatalf("%s is there", u)
			}
			continue
		}
		want := fmt.Sprint(p.version, p.incarnation, p.finished, p.live)
		if have := fmt.Sprint(e.Version, e.Incarnation, e.Finished, e.Kind != KindRemoved); have != want {
			rt.Fatalf("%s: version, incarnation, finished, live are %s, want %s", u, have, want)
		}
		if p.live && string(e.Status) != p.status {
			rt.Fatalf("%s has status %q, want %q", u, e.Status, p.status)
		}
		if acks[u].Version != p.acked {
			rt.Fatalf("%s acked %d, want %d", u, acks[u].Version, p.acked)
		}
	}
	if s, err := j.Stats(); err != nil || s.Events > uint64(j.opts.Retention.MaxEvents+len(model)+len(j.openings))+9 {
		rt.Fatalf("%d events are kept: %v", s.Events, err)
	}
}
