// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// buildReady makes a journal of more pods than a worker remembers, whose readiness
// changes.
func buildReady(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), journal.FileName)
	j, err := journal.Open(path, journal.Options{Retention: journal.Retention{MaxEvents: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var batch []journal.Event
	for i := range n {
		s := &v1.PodStatus{Phase: v1.PodRunning, Message: marker(i % 9)}
		if i%5 > 0 {
			s.Conditions = []v1.PodCondition{{Type: "Initialized", Status: v1.ConditionTrue}, {Type: v1.PodReady, Status: []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse}[i%2]}}
		}
		raw, err := podstatus.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, UID: types.UID(fmt.Sprintf("uid-%d", i%(2<<seenBits))),
			Namespace: "default", Name: "web", ContentType: journal.ContentTypeProtobuf, Status: raw})
		if len(batch) == 100 || i == n-1 {
			if _, err := j.Append(t.Context(), batch...); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	return path
}

// TestScan_Counts: what counting needs is as it is of the whole event, whoever
// read it, and each pod has one number.
func TestScan_Counts(t *testing.T) {
	path := buildReady(t, 9000)
	for name, keep := range map[string]func(*Record) bool{
		"all":        nil,
		"every 7th":  func(r *Record) bool { return r.Sequence%7 == 0 },
		"from a few": func(r *Record) bool { return string(r.UID) < "uid-2" },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			times := map[journal.Sequence]time.Time{}
			for _, e := range reference(t, path, 1, 0) {
				times[e.Sequence] = e.Time
			}
			pods := new(Pods)
			numbers, uids := map[string]int32{}, map[int32]string{}
			n := 0
			_, err = f.Scan(t.Context(), Options{Pods: pods, Keep: keep}, func(r *Record) bool {
				n++
				e, err := r.Event()
				if err != nil {
					t.Fatal(err)
				}
				whole := Of(&e, &Options{Pods: pods})
				if r.StatusSize != len(e.Status) || r.Readiness != whole.Readiness || r.Pod != whole.Pod || r.Reason != e.Reason {
					t.Fatalf("event %d: got %+v, want %+v", r.Sequence, r, whole)
				}
				if got, want := r.TimeBefore(), times[r.Sequence-1]; !got.Equal(want) {
					t.Fatalf("event %d: the one before is of %v, want %v", r.Sequence, got, want)
				}
				if uid, known := uids[r.Pod]; known && uid != string(r.UID) {
					t.Fatalf("number %d is that of %s and of %s", r.Pod, uid, r.UID)
				}
				if number, known := numbers[string(r.UID)]; known && number != r.Pod || (r.Pod == 0) != (len(r.UID) == 0) {
					t.Fatalf("pod %s has the numbers %d and %d", r.UID, number, r.Pod)
				}
				numbers[string(r.UID)], uids[r.Pod] = r.Pod, string(r.UID)
				return true
			})
			if err != nil || n < 1000 {
				t.Errorf("%d records, %v", n, err)
			}
		})
	}
}

// TestScan_PageSizes: the size of a page is the file's own.
func TestScan_PageSizes(t *testing.T) {
	source := build(t, 2500, journal.Options{Retention: journal.Retention{MaxEvents: 10000}})
	want := reference(t, source, 1, 0)
	for _, size := range []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), journal.FileName)
			src, err := bolt.Open(source, 0o600, &bolt.Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			dst, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: size})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(bolt.Compact(dst, src, 64<<10), dst.Close(), src.Close()); err != nil {
				t.Fatal(err)
			}
			got, _, err := events(t, path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := differ(want, got); diff != "" {
				t.Error(diff)
			}
			f, err := Open(path)
			if err != nil || f.PageSize != size {
				t.Fatalf("pages of %d bytes, %v", f.PageSize, err)
			}
			f.Close()
		})
	}
}
