// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statusstore/statusstore/internal/crash"
	"github.com/statusstore/statusstore/journal"
	bolt "go.etcd.io/bbolt"
)

// TestG8_TreeInsideItself: pages that were written over by a later commit can make
// a tree lead to itself. The engine would follow it for ever; reading such a file
// is refused instead.
func TestG8_TreeInsideItself(t *testing.T) {
	tests := []struct {
		name string
		want string
		// damage gets the page with the reference, where in it that is, and the page
		// that is meant.
		damage func(page []byte, at int, root byte, inner []byte, innerID byte)
	}{
		{"bucket", "page is used twice", func(page []byte, at int, root byte, _ []byte, _ byte) { page[at] = root }},
		{"freelist taken for a branch", "a freelist inside a tree", func(_ []byte, _ int, _ byte, inner []byte, innerID byte) {
			inner[8], inner[10] = 0x10, 2 // type, count
			for i := range 2 {
				copy(inner[16+16*i+8:], []byte{innerID, 0, 0, 0, 0, 0, 0, 0})
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := fastDir(t)
			b, root, inner := withBucket(t, filepath.Join(dir, journal.FileName))
			page := b[root*4096 : (root+1)*4096]
			at := strings.Index(string(page), "x"+string([]byte{byte(inner), 0, 0, 0, 0, 0, 0, 0}))
			if at < 0 || inner == 0 || inner > 255 || root > 255 {
				t.Fatalf("no reference to page %d in page %d", inner, root)
			}
			tt.damage(page, at+1, byte(root), b[inner*4096:(inner+1)*4096], byte(inner))
			write(t, filepath.Join(dir, journal.FileName), b)

			c, err := crash.StartChild(childEnv + "=check") // it may hang
			if err != nil {
				t.Fatal(err)
			}
			var answer checkAnswer
			if err := c.Ask(checkRequest{Dir: dir, Limit: 100}, &answer, time.Minute); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(answer.Problem, "reading: journal is damaged") || !strings.Contains(answer.Problem, tt.want) {
				t.Errorf("found: %q, want it to be refused: %s", answer.Problem, tt.want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// withBucket makes a journal with one more bucket, "x", and returns the file and
// the pages of the roots of both.
func withBucket(t *testing.T, path string) (b []byte, root, inner uint64) {
	t.Helper()
	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Append(t.Context(), pod("a", journal.KindSet, 900))
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		x, err := tx.CreateBucket([]byte("x"))
		if err != nil {
			return err
		}
		return x.Put([]byte("fills"), make([]byte, 3000)) // a page of its own
	})
	err = errors.Join(err, db.View(func(tx *bolt.Tx) error {
		root, inner = uint64(tx.Cursor().Bucket().Root()), uint64(tx.Bucket([]byte("x")).Root())
		return nil
	}))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return b, root, inner
}
