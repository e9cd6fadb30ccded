// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/journal"
)

// oldEvent is what matters here of an event in the description of such a journal.
type oldEvent struct {
	Kind     journal.Kind
	UID      types.UID
	Version  journal.Version
	Sequence journal.Sequence
}

// TestUpgrade takes the steps of docs/operations.md, "Upgrade", with journals that
// earlier programs have left: kept as they were, opened by this one, their pods and
// histories are there, and writing goes on.
func TestUpgrade(t *testing.T) {
	packed, err := filepath.Glob("../../journal/testdata/v*-*.db.gz")
	if err != nil || len(packed) == 0 {
		t.Fatalf("no journals of earlier programs: %v", err)
	}
	opened := 0
	for _, path := range packed {
		name := filepath.Base(path[:len(path)-len(".db.gz")])
		if !slices.Contains([]string{"v1-unclean", "v1-trimmed", "v1-salvaged", "v1-extended"}, name) {
			continue // damaged once, or not by an agent: the journal's own tests open them
		}
		opened++
		t.Run(name, func(t *testing.T) {
			var old struct {
				Node        string
				Head, Epoch uint64
				Events      []oldEvent
			}
			if err := json.Unmarshal(read(t, filepath.Join(filepath.Dir(path), name+".json")), &old); err != nil {
				t.Fatal(err)
			}
			unzip, err := gzip.NewReader(bytes.NewReader(read(t, path)))
			if err != nil {
				t.Fatal(err)
			}
			file, err := io.ReadAll(unzip)
			if err != nil {
				t.Fatal(err)
			}
			c := configFor(shortDir(t))
			c.Node = old.Node
			write(t, journalPath(c.DataDir), file)

			r := start(t, c)
			s := r.status()
			if uint64(s.Epoch) <= old.Epoch || uint64(s.HeadSequence) <= old.Head || s.Degraded { // far above: a copy from another machine
				t.Errorf("got epoch %d, head %d, degraded %v, want more than %d and %d", s.Epoch, s.HeadSequence, s.Degraded, old.Epoch, old.Head)
			}
			if code, body, err := r.try(http.MethodGet, "/readyz", nil); err != nil || code != http.StatusOK {
				t.Errorf("not ready: %d %s %v", code, body, err)
			}
			newest := make(map[types.UID]oldEvent)
			for _, e := range old.Events {
				switch e.Kind {
				case journal.KindSet, journal.KindFinished:
					newest[e.UID] = e
				case journal.KindRemoved:
					delete(newest, e.UID)
				}
			}
			if s.Pods != len(newest) || len(newest) == 0 {
				t.Errorf("got %d pods, want %d", s.Pods, len(newest))
			}
			for uid, e := range newest {
				var record httpapi.PodRecord
				r.call(http.MethodGet, httpapi.PathPods+"/"+string(uid), nil, &record)
				if record.Version != e.Version || record.Sequence != e.Sequence {
					t.Errorf("%s: got version %d at %d, want %d at %d", uid, record.Version, record.Sequence, e.Version, e.Sequence)
				}
				var history httpapi.History
				r.call(http.MethodGet, httpapi.HistoryPath(uid), nil, &history)
				if n := len(history.Events); n == 0 || history.Events[n-1].Error != "" {
					t.Errorf("%s: got %d events, the last: %+v", uid, n, history.Events)
				}
			}
			pod := newPod(0, message("after the upgrade"))
			r.set(pod)
			r.stop()
			r = start(t, c)
			if got := r.status().Epoch; got != s.Epoch+1 {
				t.Errorf("got epoch %d after a restart, want %d", got, s.Epoch+1)
			}
			if got := r.get(pod).Status.Message; got != "after the upgrade" {
				t.Errorf("got %q after a restart", got)
			}
			r.stop()

			// Back to the copy that was kept.
			write(t, journalPath(c.DataDir), file)
			r = start(t, c)
			if s := r.status(); s.Pods != len(newest) || s.Degraded {
				t.Errorf("the copy: got %d pods, degraded %v, want %d pods", s.Pods, s.Degraded, len(newest))
			}
			r.stop()
		})
	}
	if opened != 4 {
		t.Errorf("%d journals of earlier programs were opened, want 4", opened)
	}
}
