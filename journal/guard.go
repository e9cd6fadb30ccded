// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"runtime/debug"

	bolterrors "go.etcd.io/bbolt/errors"
)

// bbolt answers damage with a panic, a memory fault or wrong data, rarely with
// an error. Two things stand before it: preflight, which reads the meta pages
// as plain bytes before anything is mapped, and guard around each call.

// bbolt's file header, format version 2: a 16-byte page header, then the meta.
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	pageHeaderSize = 16
	metaSize       = 64 // with its FNV-64a checksum, which covers the first 56
)

// boltMeta is the part of a bbolt meta page that a check needs.
type boltMeta struct {
	pageSize  uint32
	root      uint64 // page of the root bucket
	copied    uint64 // its sequence, which the engine itself never changes: see copies.go
	freelist  uint64 // page
	highWater uint64 // pages in use; the file has at least as many
	txid      uint64
}

var errBoltMagic = errors.New("no bbolt signature")

func parseBoltMeta(page []byte) (boltMeta, error) {
	if len(page) < pageHeaderSize+metaSize {
		return boltMeta{}, io.ErrUnexpectedEOF
	}
	m := page[pageHeaderSize : pageHeaderSize+metaSize]
	le := binary.LittleEndian
	if le.Uint32(m) != boltMagic {
		return boltMeta{}, errBoltMagic
	}
	if v := le.Uint32(m[4:]); v != boltVersion {
		return boltMeta{}, fmt.Errorf("bbolt format %d", v)
	}
	sum := fnv.New64a()
	sum.Write(m[:metaSize-8])
	if sum.Sum64() != le.Uint64(m[metaSize-8:]) {
		return boltMeta{}, errChecksum
	}
	return boltMeta{pageSize: le.Uint32(m[8:]), root: le.Uint64(m[16:]), copied: le.Uint64(m[24:]), freelist: le.Uint64(m[32:]), highWater: le.Uint64(m[40:]), txid: le.Uint64(m[48:])}, nil
}

// preflightResult is what the meta pages say.
type preflightResult struct {
	pageSize int64
	// suspect: one meta page is invalid, so bbolt opens the commit before it.
	// Either a crash tore the page while it was written, and nothing accepted is
	// missing, or the newest commit is lost. Nothing in the file tells them apart.
	suspect   bool
	freeBytes int64   // pages on the freelist
	structure []error // what checkTree found
	copied    uint64  // see copies.go
}

// soundForWriting refuses any damage: a commit would build on it.
func (p preflightResult) soundForWriting(path string) error {
	if len(p.structure) == 0 {
		return nil
	}
	return structureError(path, p.structure[0])
}

func structureError(path string, err error) error {
	e := &CorruptError{Path: path, Kind: ErrCorrupt, Err: err, Hint: hintSalvage}
	if place, ok := errors.AsType[*pageError](err); ok {
		e.Page, e.Offset = place.page, place.offset
	}
	return e
}

// safeForReading refuses only what the engine would not survive. Other damage is
// named where reading meets it.
func (p preflightResult) safeForReading(path string) error {
	for _, err := range p.structure {
		if isUnsafe(err) {
			return structureError(path, err)
		}
	}
	return nil
}

// preflight refuses files that bbolt would crash on or initialise anew.
func preflight(path string, d depth) (preflightResult, error) {
	f, err := openRegular(path)
	if err != nil {
		return preflightResult{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return preflightResult{}, fmt.Errorf("open journal: %w", err)
	}
	if info.Size() == 0 {
		return preflightResult{}, &CorruptError{Path: path, Kind: ErrEmpty, Hint: hintRestore}
	}
	metas, errs := readMetas(f)
	if len(metas) == 0 {
		kind, cause := ErrCorrupt, errors.Join(errs...)
		if errors.Is(errs[0], errBoltMagic) || errors.Is(errs[0], io.ErrUnexpectedEOF) {
			kind, cause = ErrNotJournal, errors.New("neither of its two meta pages is one of a journal; it is another file, or both are destroyed")
		}
		return preflightResult{}, &CorruptError{Path: path, Kind: kind, Err: cause, Hint: hintSalvage}
	}
	newest := metas[0]
	for _, m := range metas {
		if m.txid > newest.txid {
			newest = m
		}
	}
	want := int64(newest.highWater) * int64(newest.pageSize)
	if info.Size() < want {
		return preflightResult{}, &CorruptError{Path: path, Kind: ErrTruncated, Hint: hintSalvage,
			Err: fmt.Errorf("it has %d bytes, its meta page says %d", info.Size(), want)}
	}
	return preflightResult{pageSize: int64(newest.pageSize), suspect: len(metas) == 1, copied: newest.copied, freeBytes: freeBytes(f, newest),
		structure: checkTree(f, newest, d)}, nil
}

// freeBytes reads the length of the freelist: a 16-bit count in the page
// header, or, if that is full, a 64-bit one behind it. It is for information
// only; a page that makes no sense counts as none.
func freeBytes(f io.ReaderAt, m boltMeta) int64 {
	page := make([]byte, pageHeaderSize+8)
	if m.freelist >= m.highWater {
		return 0
	}
	if _, err := f.ReadAt(page, int64(m.freelist)*int64(m.pageSize)); err != nil {
		return 0
	}
	count := uint64(binary.LittleEndian.Uint16(page[10:]))
	if count == 0xFFFF {
		count = binary.LittleEndian.Uint64(page[pageHeaderSize:])
	}
	if count > m.highWater {
		return 0
	}
	return int64(count) * int64(m.pageSize)
}

// readMetas returns the valid ones of the two meta pages, and why the others
// are not. The second lies one page in; without a valid first the page size is
// not known, so all that bbolt allows are tried.
func readMetas(f io.ReaderAt) (metas []boltMeta, errs []error) {
	at := func(offset int64) (boltMeta, error) {
		page := make([]byte, pageHeaderSize+metaSize)
		if _, err := f.ReadAt(page, offset); err != nil {
			return boltMeta{}, io.ErrUnexpectedEOF
		}
		m, err := parseBoltMeta(page)
		if err == nil && (m.pageSize < 512 || m.pageSize > 1<<24 || m.pageSize&(m.pageSize-1) != 0 || m.highWater > 1<<40) {
			return m, errShape
		}
		return m, err
	}
	first, err := at(0)
	if err == nil {
		metas = append(metas, first)
		second, err := at(int64(first.pageSize))
		if err == nil && second.pageSize == first.pageSize {
			return append(metas, second), nil
		}
		return metas, append(errs, err)
	}
	errs = append(errs, err)
	for size := int64(1024); size <= 1<<24; size <<= 1 {
		m, err := at(size)
		if err == nil && int64(m.pageSize) == size {
			return append(metas, m), errs
		}
	}
	return metas, errs
}

// guard turns panics, memory faults and signs of damage in bbolt into errors.
func guard(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &CorruptError{Path: path, Kind: ErrCorrupt, Err: &panicError{p}, Hint: hintVerify}
		}
	}()
	err = withCause(fn())
	// No bucket of a journal holds a bucket; where the engine meets one, a bit is wrong.
	if errors.Is(err, bolterrors.ErrIncompatibleValue) {
		err = &CorruptError{Path: path, Kind: ErrCorrupt, Err: fmt.Errorf("storage engine: %w", err), Hint: hintVerify}
	}
	return err
}

// panicError is what bbolt panicked with. After one, its handle is not to be
// used again: it may hold its locks for ever.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("storage engine: %v", p.value) }

// hints: what helps, by kind of damage.
const (
	hintVerify  = `run "journal-dump verify" on it`
	hintSalvage = `restore a snapshot, or run "journal-dump salvage" on it`
	hintRestore = "restore a snapshot, or move it away to start anew"
)
