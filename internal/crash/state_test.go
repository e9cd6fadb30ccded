// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/statusstore/statusstore/journal"
	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"
)

// absent is the state of a journal that was never there.
const absent = "absent\n"

// view is what a Reader and a Journal have in common.
type view interface {
	Newest() iter.Seq2[journal.Event, error]
	Acks() (map[types.UID]journal.Ack, error)
	Objects() iter.Seq2[types.UID, journal.ObjectResult]
}

func sum(b []byte) string { return fmt.Sprintf("%d bytes %08x", len(b), crc32.ChecksumIEEE(b)) }

func eventLine(e journal.Event) string {
	return fmt.Sprintf("%d %v epoch %d %s %s/%s version %d incarnation %d finished %v %s %s %s aux %s %v\n", e.Sequence, e.Kind, e.Epoch, e.UID, e.Namespace, e.Name,
		e.Version, e.Incarnation, e.Finished, e.Reason, e.ContentType, sum(e.Status), sum(e.Aux), e.Attributes)
}

// pods describes what a restarted agent would know.
func pods(v view) (string, error) {
	var b strings.Builder
	for e, err := range v.Newest() {
		if err != nil {
			return "", err
		}
		b.WriteString("newest " + eventLine(e))
	}
	acks, err := v.Acks()
	if err != nil {
		return "", err
	}
	for _, uid := range slices.Sorted(maps.Keys(acks)) {
		a := acks[uid]
		fmt.Fprintf(&b, "ack %s %s %d %d\n", uid, a.LiveUID, a.Version, a.Time.UnixNano())
	}
	for uid, o := range v.Objects() {
		if o.Err != nil {
			return "", o.Err
		}
		fmt.Fprintf(&b, "object %s %s\n", uid, sum(o.Object))
	}
	return b.String(), nil
}

// description is all that a journal file holds.
type description struct {
	text     string // everything
	pods     string // of it, what a restarted agent would know
	problems []string
	suspect  bool // one meta page is invalid
	clean    bool // closed in order
}

// describe reads a file that nobody has open.
func describe(path string) (d description, err error) {
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	d.suspect = r.Info().Suspect
	_, err = r.Verify(context.Background(), func(p journal.Problem) {
		if !d.suspect || !strings.Contains(p.Message, "meta pages is invalid") {
			d.problems = append(d.problems, p.String())
		}
	})
	if err != nil {
		return d, err
	}
	if d.pods, err = pods(r); err != nil {
		return d, err
	}
	s, err := r.Stats()
	if err != nil {
		return d, err
	}
	if d.clean, err = closedInOrder(path); err != nil {
		return d, err
	}
	text := fmt.Sprintf("head %d epoch %d trimmed to %d, %d events of %d bytes, %s\n", s.Head, s.Epoch, s.Horizon, s.Events, s.EventBytes, closing(d.clean))
	for e, err := range r.Events(1, 0) {
		if err != nil {
			return d, err
		}
		text += eventLine(e)
	}
	d.text = text + d.pods
	return d, nil
}

func closing(clean bool) string {
	if clean {
		return "closed in order"
	}
	return "not closed in order"
}

// closedInOrder reads what a Reader does not tell: the sealed value [clean].
func closedInOrder(path string) (clean bool, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return false, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket([]byte("meta")).Get([]byte("opened"))
		if len(v) < 2 || v[1] != 0xc2 && v[1] != 0xc3 {
			return fmt.Errorf("opened is %x", v)
		}
		clean = v[1] == 0xc3
		return nil
	})
	return clean, errors.Join(err, db.Close())
}

// stateOf describes the journal in dir. Another process may have it open: what
// is described is a copy of the bytes.
func stateOf(dir, scratch, name string) (description, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return description{text: absent}, nil
	}
	if err != nil {
		return description{}, err
	}
	path := filepath.Join(scratch, "copy.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return description{}, err
	}
	d, err := describe(path)
	if err == nil && len(d.problems) > 0 {
		err = fmt.Errorf("verify: %s", strings.Join(d.problems, "; "))
	}
	return d, err
}
