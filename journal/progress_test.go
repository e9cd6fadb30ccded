// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// TestProgress: each long call grows to its total, in steps, and stops when told to.
func TestProgress(t *testing.T) {
	path, _ := sparse(t)
	live := openNewIn(t, fastDir(t), Options{Retention: Retention{MaxEvents: 1 << 20}})
	for i := range 20 {
		var batch []Event
		for k := range 50 {
			batch = append(batch, set("a", string(noise(i*50+k, 2000))))
		}
		mustAppend(t, live, batch...)
	}
	dir := fastDir(t)
	calls := map[string]func(ctx context.Context, dst string) error{
		"verify": func(ctx context.Context, _ string) error {
			r, err := OpenReadOnly(path, ReadOptions{})
			if err != nil {
				return err
			}
			_, err = r.Verify(ctx, func(p Problem) { t.Error(p) })
			return errors.Join(err, r.Close())
		},
		"salvage": func(ctx context.Context, dst string) error { _, err := Salvage(ctx, path, dst); return err },
		"compact": func(ctx context.Context, dst string) error {
			_, err := Compact(ctx, live.path+".copy", dst)
			return err
		},
		"snapshot": live.Snapshot,
		"snapshot file": func(ctx context.Context, _ string) error {
			f, err := live.SnapshotFile(ctx)
			if err == nil {
				f.Close()
			}
			return err
		},
	}
	if err := live.Snapshot(t.Context(), live.path+".copy"); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var steps, last, size int64
			ctx := WithProgress(t.Context(), func(done, total int64) {
				if steps++; done <= last || done > total || size != 0 && size != total {
					t.Errorf("%d of %d after %d of %d", done, total, last, size)
				}
				last, size = done, total
			})
			if err := call(ctx, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if steps < 4 || steps > 500 || last != size {
				t.Errorf("%d steps, at last %d of %d", steps, last, size)
			}
			// In the middle it is stopped, and leaves nothing behind.
			stop := errors.New("stop")
			inner, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ctx = WithProgress(inner, func(done, total int64) {
				if done > total/4 {
					cancel(stop)
				}
			})
			if err := call(ctx, filepath.Join(dir, name+" again")); !errors.Is(err, stop) {
				t.Errorf("stopped: %v", err)
			}
		})
	}
	if got := len(names(t, dir)); got != 3 {
		t.Errorf("left behind: %v", names(t, dir))
	}
	if got := names(t, filepath.Dir(live.path)); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
}

// TestCompactNestedBuckets: compaction keeps buckets of others as they are, also
// when it needs several transactions.
func TestCompactNestedBuckets(t *testing.T) {
	path := filled(t, 10)
	value := noise(1, 300<<10)
	editBolt(t, path, func(tx *bolt.Tx) error {
		outer, err := tx.CreateBucket([]byte("other"))
		if err != nil {
			return err
		}
		for i := range 8 {
			inner, err := outer.CreateBucket(fmt.Append(nil, "inner ", i))
			if err != nil {
				return err
			}
			if err := errors.Join(inner.SetSequence(uint64(i+1)), inner.Put([]byte("k"), value), inner.Put([]byte("l"), value),
				outer.Put(fmt.Append(nil, "k", i), value), inner.Put([]byte("empty"), nil)); err != nil {
				return err
			}
		}
		return nil
	})
	out := filepath.Join(t.TempDir(), "out.db")
	if _, err := Compact(t.Context(), path, out); err != nil {
		t.Fatal(err)
	}
	if got, want := dumpBolt(t, out), dumpBolt(t, path); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func dumpBolt(t *testing.T, path string) (text string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var walk func(indent string, b *bolt.Bucket) error
	walk = func(indent string, b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				text += fmt.Sprintf("%s%q sequence %d\n", indent, k, b.Bucket(k).Sequence())
				return walk(indent+" ", b.Bucket(k))
			}
			text += fmt.Sprintf("%s%q %x\n", indent, k, v[:min(20, len(v))])
			return nil
		})
	}
	if err := db.View(func(tx *bolt.Tx) error { return walk("", tx.Cursor().Bucket()) }); err != nil {
		t.Fatal(err)
	}
	return text
}
