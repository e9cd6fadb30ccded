// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// ErrUnsound: something is not as a sound journal has it, or the file is in use.
// journal.OpenReadOnly and journal.Reader say what.
var ErrUnsound = errors.New("not a sound journal")

func unsound(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnsound, fmt.Errorf(format, args...))
}

// Head is the journal's state as of its last commit.
type Head struct {
	Sequence journal.Sequence
	Epoch    journal.Epoch
	Events   uint64           // records
	Bytes    uint64           // of records
	Horizon  journal.Sequence // gaps up to here are normal
	Indexed  journal.Sequence // the index covers all up to here
}

// File is a sound journal, open for reading.
type File struct {
	f       *os.File
	size    int64
	data    []byte       // the file, mapped
	touched atomic.Int64 // bytes of it that count as the process's memory
	meta    meta
	buckets map[string]bucket

	Info      journal.Info
	Head      Head
	FreePages uint64
	PageSize  int
	// Foreign is set if the file holds buckets that are not a journal's.
	Foreign bool
}

// Open opens the file at path if it is sound as far as its meta pages, its bucket
// tree and its head tell.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsound, err)
	}
	s := &File{f: f}
	if err := s.load(path); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close releases the file and its lock. It may be called more than once.
func (s *File) Close() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	var err error
	if s.data != nil {
		err = unix.Munmap(s.data)
		s.data = nil
	}
	return errors.Join(err, f.Close())
}

func (s *File) load(path string) error {
	// Without waiting: the other reader waits, and says who holds it.
	if err := unix.Flock(int(s.f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return unsound("lock: %w", err)
	}
	info, err := s.f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return unsound("not a regular file")
	}
	s.size = info.Size()
	if s.meta, err = readMeta(s.f, s.size); err != nil {
		return err
	}
	s.PageSize = int(s.meta.pageSize)
	if s.FreePages, err = s.freePages(); err != nil {
		return err
	}
	if err := s.loadBuckets(); err != nil {
		return err
	}
	if err := s.loadMeta(path); err != nil {
		return err
	}
	// The size is what the meta page says: less than the file's, that was checked.
	length := int64(s.meta.highWater) * int64(s.meta.pageSize)
	if s.data, err = unix.Mmap(int(s.f.Fd()), 0, int(length), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return unsound("map: %w", err)
	}
	return nil
}

// loadMeta reads what the journal says of itself.
func (s *File) loadMeta(path string) error {
	values := map[string][]byte{}
	err := s.each("meta", func(k, v []byte) error {
		values[string(k)] = append([]byte(nil), v...)
		return nil
	})
	if err != nil {
		return err
	}
	if string(values["magic"]) != "statusstore-journal" || string(values["format"]) != string([]byte{0, 0, 0, journal.Format}) {
		return unsound("another format")
	}
	about, err := unseal([]byte("about"), values["about"])
	if err != nil {
		return err
	}
	s.Info = journal.Info{Path: path, Format: journal.Format, Node: string(about.bytes()), Created: about.time()}
	head, err := unseal([]byte("head"), values["head"])
	if err != nil {
		return err
	}
	s.Head = Head{Sequence: journal.Sequence(head.uint()), Epoch: journal.Epoch(head.uint()), Events: head.uint(), Bytes: head.uint(),
		Horizon: journal.Sequence(head.uint()), Indexed: journal.Sequence(head.uint())}
	opened, err := unseal([]byte("opened"), values["opened"])
	if err != nil {
		return err
	}
	opened.uint()
	if about.bad() || head.bad() || opened.bad() {
		return unsound("meta records are short")
	}
	return nil
}

// Acks returns the acks by the UID of the pod that the node runs.
func (s *File) Acks() (map[types.UID]journal.Ack, error) {
	acks := map[types.UID]journal.Ack{}
	err := s.each("acks", func(k, v []byte) error {
		r, err := unseal(k, v)
		if err != nil {
			return err
		}
		a := journal.Ack{UID: types.UID(k), LiveUID: types.UID(r.bytes()), Version: journal.Version(r.uint()), Time: r.time()}
		if r.bad() {
			return unsound("ack of %q is short", k)
		}
		acks[a.UID] = a
		return nil
	})
	return acks, err
}

// IndexEntry is what the index knows of a pod. Events above Head.Indexed are not
// in it.
type IndexEntry struct {
	Removed bool // the entry is a tombstone
	Time    time.Time
}

// Index returns the index.
func (s *File) Index() (map[types.UID]IndexEntry, error) {
	index := map[types.UID]IndexEntry{}
	err := s.each("pods", func(k, v []byte) error {
		r, err := unseal(k, v)
		if err != nil {
			return err
		}
		r.uint()
		r.uint()
		r.uint()
		r.uint()
		e := IndexEntry{Removed: r.uint() == 1, Time: r.time()}
		if r.bad() {
			return unsound("index entry of %q is short", k)
		}
		index[types.UID(k)] = e
		return nil
	})
	return index, err
}
