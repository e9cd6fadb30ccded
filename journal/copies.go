// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// A copy that is put in the place of a newer journal would give away versions that
// its pods have had already. Two things tell a copy:
//
//   - Each snapshot and each salvaged file has a number of its own, in the root
//     bucket's sequence: a field of the meta pages that the engine keeps and nobody
//     uses. A journal remembers in its head with which number it was opened, so
//     one that differs is a copy that was not opened before.
//   - The initialised mark beside the file says which file it was, and how far it
//     had come at the last open and the last close. A file that has not come as
//     far, or a file without its mark, was copied by other means.
//
// A copy that is opened leaps: epoch, sequence and each pod's next version go on
// copyLeap above what the file says.

// copyLeap is more than a node does in the life of a backup: at ten events a second
// for one and the same pod it takes a day.
const copyLeap = 1 << 20

// leap leaves room for what the lost journal may have done. All below is then
// behind the horizon: the gap is no damage.
func (h *head) leap() {
	h.Sequence += copyLeap
	h.Epoch += copyLeap
	h.Horizon = h.Sequence
}

// origin says why a file is taken for a copy; it is the value of AttrRestored.
type origin string

const (
	original       origin = ""
	originSnapshot origin = "snapshot"
	originNoMark   origin = "its initialised mark is missing"
	originOther    origin = "its initialised mark is of another file"
	originOlder    origin = "its initialised mark has seen a newer one"
)

// stampCopy makes the file a copy of its own.
func stampCopy(f *os.File) error {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it does not fail
	return stamp(f, max(1, binary.LittleEndian.Uint64(b[:])))
}

// stamp writes a copy's number into both meta pages of a closed file.
func stamp(f *os.File, number uint64) error {
	metas, errs := readMetas(f)
	if len(metas) != 2 {
		return errors.Join(errs...)
	}
	for i, m := range metas {
		at := int64(i)*int64(m.pageSize) + pageHeaderSize
		b := make([]byte, metaSize)
		if _, err := f.ReadAt(b, at); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(b[24:], number)
		sum := fnv.New64a()
		sum.Write(b[:metaSize-8])
		binary.LittleEndian.PutUint64(b[metaSize-8:], sum.Sum64())
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

// markState is the second line of the initialised mark.
type markState struct {
	Created int64    `json:"created"` // of the file, nanoseconds
	Epoch   Epoch    `json:"epoch"`
	Head    Sequence `json:"headSequence"`
}

const markText = "This directory holds a statusstore journal. Remove this file only to start anew without it.\n"

// origin finds out whether the file is a copy. Call it after load.
func (j *Journal) origin() origin {
	h := j.state.head
	m, err := readMark(j.path)
	switch {
	case j.copyNumber != 0 && j.copyNumber != h.Copy:
		return originSnapshot
	case h.Epoch == 0:
		return original // just created
	case errors.Is(err, fs.ErrNotExist):
		return originNoMark
	case err != nil: // of an earlier release
		return original
	case m.Created != unixNanos(j.about.Created):
		return originOther
	case h.Epoch < m.Epoch, h.Epoch == m.Epoch && h.Sequence < m.Head:
		return originOlder
	}
	return original
}

// checkCopy reads all of a copy before it leaps: afterwards everything lies below
// the horizon, where a gap is no sign of damage any more.
func (j *Journal) checkCopy(o origin) error {
	if o == original {
		return nil
	}
	pre, err := preflight(j.path, leaves)
	if err == nil {
		err = pre.soundForWriting(j.path)
	}
	if err != nil {
		return err
	}
	for _, err := range j.Events(1, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// rememberMark notes how far the journal has come. If the mark stays as it was, only
// less is known of copies: on a full disk an open must succeed. A directory that
// cannot be synced is another matter.
func (j *Journal) rememberMark() error {
	replaced, err := writeMark(j.path, j.markState())
	if err != nil && replaced {
		return fmt.Errorf("mark journal %s: %w", j.path, err)
	}
	if err != nil {
		j.log.Warn("initialised mark cannot be written", "path", j.path+MarkSuffix, "err", err)
	}
	return nil
}

func (j *Journal) markState() markState {
	return markState{unixNanos(j.about.Created), j.state.head.Epoch, j.state.head.Sequence}
}

// mark sees to it that there is an initialised mark before the first event.
func mark(path string, o origin, s markState) error {
	if marked(path) {
		return nil
	}
	if o != original {
		s.Epoch = math.MaxUint64 // until the open is done, it is a copy
	}
	if _, err := writeMark(path, s); err != nil {
		return fmt.Errorf("mark journal %s as initialised: %w", path, err)
	}
	return nil
}

func marked(path string) bool {
	_, err := os.Lstat(path + MarkSuffix)
	return err == nil
}

// writeMark replaces the mark; a crash leaves the old or the new one.
func writeMark(path string, s markState) (replaced bool, err error) {
	line, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+creatingSuffix) // removed by the next open
	if err != nil {
		return false, err
	}
	_, err = io.WriteString(f, markText+string(line)+"\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path+MarkSuffix)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(f.Name()))
	}
	return true, syncDir(filepath.Dir(path))
}

var errMarkText = errors.New("the mark says no more than that there is a journal")

func readMark(path string) (s markState, err error) {
	f, err := openRegular(path + MarkSuffix)
	if err != nil {
		return s, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return s, err
	}
	_, line, _ := strings.Cut(string(b), "\n")
	if json.Unmarshal([]byte(line), &s) != nil {
		return s, errMarkText
	}
	return s, nil
}
