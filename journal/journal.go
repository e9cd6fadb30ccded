// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Options tune a journal. The zero value is the recommended setup.
type Options struct {
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// LockTimeout bounds the wait for another process that has the file open.
	// Default 1 s.
	LockTimeout time.Duration
	// Retention says how much history is kept.
	Retention Retention
	// Node is recorded at creation and compared at open; empty is not compared.
	Node string
	// Software is recorded in opened events.
	Software string
	// MaxFileBytes bounds the file; beyond it appends fail as on a full disk
	// (ErrDegraded). 0 is no bound.
	MaxFileBytes int64
	// OnCommit, if set, gets the events of each commit after it is durable and
	// before Append returns: in order, one call at a time. It must not append.
	OnCommit func([]Event)
}

func (o Options) withDefaults() (Options, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = time.Second
	}
	if o.LockTimeout < 0 {
		return o, fmt.Errorf("LockTimeout %v is negative", o.LockTimeout)
	}
	var err error
	o.Retention, err = o.Retention.withDefaults()
	return o, err
}

// boltOptions: a lock timeout always, and never one of the options that trade
// durability for speed.
//
// The array of free pages gives out the lowest one. What a commit writes lies
// together then: 3 to 4 runs of pages instead of 5 to 9 with the map, and a run
// costs a disk about as much as a page.
func boltOptions(o Options) *bolt.Options {
	return &bolt.Options{
		Timeout:         o.LockTimeout,
		FreelistType:    bolt.FreelistArrayType,
		InitialMmapSize: mapBytes,
		MaxSize:         int(o.MaxFileBytes),
	}
}

// mapBytes is address space, not memory: a map that is large from the start is
// not replaced while readers hold it, which would stall writers.
const mapBytes = 512 << 20

// Journal is a journal open for writing. All methods may be called concurrently.
type Journal struct {
	view
	opts Options
	log  *slog.Logger

	queue queue

	// commitMu serialises commits, and everything else that replaces the engine.
	commitMu sync.Mutex
	sealer   *sealer
	broken   error // the engine must be reopened before the next commit
	shut     bool

	state // see index.go
	room  room
	acks  ackTable
	tail  tail
	fault faultState
}

// Open opens the journal at path for writing and creates it if there is none;
// its directory must exist. It takes the file's lock, raises the epoch and
// appends an opened event. It starts no goroutine.
//
// Errors: ErrLocked, ErrNotJournal, ErrNewerFormat, ErrTruncated, ErrCorrupt,
// ErrEmpty, ErrMissing, ErrWrongNode. After any of them the file is as before.
func Open(path string, o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	path, err = locate(path, o)
	if err != nil {
		return nil, err
	}
	j := &Journal{opts: o, log: o.Logger, sealer: newSealer()}
	j.path = path
	j.tail.init()
	j.durable = func() Sequence { seq, _ := j.Head(); return seq }
	j.fault.init()
	if err := j.openEngine(); err != nil {
		return nil, err
	}
	if err := j.prepare(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	// A crash, or an error, may have come between the change of a name (at
	// creation, compaction) and the sync of the directory, or between the write of
	// a meta page and its sync.
	origin := j.origin()
	if err := j.checkCopy(origin); err != nil {
		return nil, errors.Join(err, j.close())
	}
	err = errors.Join(mark(path, origin, j.markState()), syncDir(filepath.Dir(path)), j.confirm())
	if err == nil {
		err = j.recordOpening(origin)
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	if err := j.rememberMark(); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// locate resolves links and creates the file where that is right.
func locate(path string, o Options) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// Creating through a dangling link would put a journal where nobody looks.
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", fmt.Errorf("open journal: %w", err)
		}
		return path, nil
	}
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("open journal: %w", err)
	}
	if marked(path) {
		return "", &CorruptError{Path: path, Kind: ErrMissing, Hint: "restore a snapshot, or remove " + path + MarkSuffix + " to start anew",
			Err: errors.New("the initialised mark says that there was one")}
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	return path, create(path, o)
}

// openEngine checks the file, opens it with bbolt and identifies it.
func (j *Journal) openEngine() error {
	unlock, err := probeLock(j.path, j.opts.LockTimeout, lockExclusive)
	if err != nil {
		return err
	}
	pre, err := preflight(j.path, branches)
	// bbolt takes the lock itself, on a descriptor of its own.
	unlock()
	if err == nil {
		err = pre.soundForWriting(j.path)
	}
	if err != nil {
		return err
	}
	db, err := openBolt(j.path, boltOptions(j.opts))
	if err != nil {
		return err
	}
	var a about
	err = guard(j.path, func() error {
		return db.View(func(tx *bolt.Tx) (err error) {
			if err = j.identify(tx); err == nil {
				a, err = j.readAbout(tx)
			}
			return err
		})
	})
	if err == nil && j.opts.Node != "" && a.Node != "" && j.opts.Node != a.Node {
		err = &CorruptError{Path: j.path, Kind: ErrWrongNode, Hint: "use another data directory",
			Err: fmt.Errorf("it was made for node %q, this is node %q", a.Node, j.opts.Node)}
	}
	if err != nil {
		return errors.Join(err, guard(j.path, db.Close))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.db, j.freeBytes = db, pre.freeBytes
	if j.state.pods == nil { // at open, not at a reopen
		j.about, j.suspect, j.copyNumber = a, pre.suspect, pre.copied
	}
	return nil
}

func openBolt(path string, o *bolt.Options) (db *bolt.DB, err error) {
	var file *os.File
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		// bbolt would create a missing file; here that is never right.
		f, err := os.OpenFile(name, flag&^os.O_CREATE, mode)
		file = f
		return f, err
	}
	err = guard(path, func() error {
		if db, err = bolt.Open(path, 0o600, o); err != nil {
			return err
		}
		db.AllocSize = growBytes
		return sameFile(file, path)
	})
	if db != nil && err != nil {
		err = errors.Join(err, guard(path, db.Close))
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, lockedError(path)
	}
	if err != nil {
		if _, ok := errors.AsType[*CorruptError](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("open journal %s: %w", path, err)
	}
	return db, nil
}

// sameFile checks that the name still means the file that was opened: while we
// waited for its lock, compaction may have put another in its place.
func sameFile(f *os.File, path string) error {
	opened, err1 := f.Stat()
	named, err2 := os.Stat(path)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !os.SameFile(opened, named) {
		return lockedError(path)
	}
	return nil
}

func lockedError(path string) error {
	return fmt.Errorf("open journal %s: %w; stop the other agent, or use its socket", path, ErrLocked)
}

// prepare does what must be done while the file is locked and before it is used.
func (j *Journal) prepare() error {
	base := filepath.Base(j.path)
	for _, prefix := range []string{base + creatingSuffix, base + compactingSuffix, "." + base + snapshotSuffix} {
		if err := removeLeftovers(filepath.Dir(j.path), prefix); err != nil {
			return err
		}
	}
	if err := j.load(); err != nil {
		return err
	}
	return j.compactAtOpen()
}

// load reads what the journal must know to write. It reads the index and the
// events after it, then each pod's newest event, so that damage in what will be
// served is found before anything is written.
func (j *Journal) load() error {
	err := j.read(func(tx *bolt.Tx) error {
		if err := j.loadState(tx, &j.state); err != nil {
			return err
		}
		if err := j.loadAcks(tx); err != nil {
			return err
		}
		sum, err := sumOf(tx.Bucket(bucketObjects))
		if err != nil {
			return err
		}
		return j.checkSum(bucketObjects, j.state.head.Sums.known, j.state.head.Sums.objects, sum)
	})
	if err != nil {
		return err
	}
	j.tail.publish(j.state.head.Sequence)
	for _, err := range j.Newest() {
		if err != nil {
			return err
		}
	}
	return nil
}

// openedState remembers across opens how the last run ended.
type openedState struct{ clean bool }

func (s openedState) encode(w *sealer) []byte {
	w.begin(1)
	w.bool(s.clean)
	return w.finish(keyOpened)
}

func decodeOpened(value []byte) (openedState, error) {
	o, err := unseal(keyOpened, value)
	if err != nil {
		return openedState{}, err
	}
	s := openedState{clean: o.bool()}
	return s, o.end()
}

// recordOpening raises the epoch and appends the opened event.
func (j *Journal) recordOpening(origin origin) error {
	attrs := map[string]string{AttrClean: fmt.Sprint(j.wasClean)}
	if j.opts.Software != "" {
		attrs[AttrSoftware] = j.opts.Software
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil && len(id) >= 36 {
		attrs[AttrBootID] = string(id[:36])
	}
	if j.suspect {
		attrs[AttrSuspect] = "true"
		j.log.Warn("last commit may be lost: one of the journal's meta pages is invalid", "path", j.path)
	}
	if origin != original {
		attrs[AttrRestored] = string(origin)
		j.log.Warn("journal is a copy that was put back; versions, sequences and the epoch go on far above it", "path", j.path, "reason", string(origin))
	}
	_, err := j.append(context.Background(), []Event{{Kind: KindOpened, Attributes: attrs}})
	return err
}

// WasClean reports whether the run before this one closed the journal.
func (j *Journal) WasClean() bool { return j.wasClean }

// Close makes acks durable, notes that the journal was closed in order, and
// releases the file. It may be called more than once.
func (j *Journal) Close() error {
	if !j.queue.close() {
		return nil
	}
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	err := j.commitFinal()
	if err == nil {
		err = j.rememberMark()
	}
	j.shut = true
	j.tail.close()
	if j.fault.fatal {
		// The engine may have panicked with its locks held: closing it could wait
		// for ever. The process is about to end, and with it the file's lock.
		j.mu.Lock()
		defer j.mu.Unlock()
		j.db, j.closed = nil, true
		return err
	}
	return errors.Join(err, j.close())
}

var (
	_ io.Closer = (*Journal)(nil)
	_ io.Closer = (*Reader)(nil)
)
