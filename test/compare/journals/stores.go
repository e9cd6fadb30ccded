// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver
)

// pebbleStore keeps events, acks and the head under three prefixes.
type pebbleStore struct {
	db   *pebble.DB
	trim trimmer
}

// quiet keeps pebble from writing to standard error.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func openPebble(dir string) (engine, error) {
	db, err := pebble.Open(filepath.Join(dir, "pebble"), &pebble.Options{Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	return newGrouped(&pebbleStore{db: db}), nil
}

func prefixed(prefix byte, key []byte) []byte { return append([]byte{prefix}, key...) }

func (p *pebbleStore) commit(first uint64, batch []event, acks []ack) error {
	b := p.db.NewBatch()
	last := first
	errs := make([]error, 0, 4)
	for i, e := range batch {
		last = first + uint64(i)
		errs = append(errs, b.Set(prefixed('e', number(last)), record(e), nil))
	}
	for _, a := range acks {
		errs = append(errs, b.Set(prefixed('a', []byte(a.uid)), number(a.sequence), nil))
	}
	if from, to := p.trim.next(last); from < to {
		errs = append(errs, b.DeleteRange(prefixed('e', number(from)), prefixed('e', number(to)), nil))
	}
	errs = append(errs, b.Set([]byte("h"), number(last), nil), b.Commit(pebble.Sync))
	return errors.Join(append(errs, b.Close())...)
}

func (p *pebbleStore) close() error { return p.db.Close() }

// sqliteStore has one connection, since there is one writer.
type sqliteStore struct {
	db                        *sql.DB
	insert, acked, head, drop *sql.Stmt
	trim                      trimmer
}

func openSQLite(dir string) (engine, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "events.sqlite")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &sqliteStore{db: db}
	for _, create := range []string{
		"CREATE TABLE events (sequence INTEGER PRIMARY KEY, record BLOB NOT NULL)",
		"CREATE TABLE acks (uid TEXT PRIMARY KEY, sequence INTEGER NOT NULL) WITHOUT ROWID",
		"CREATE TABLE head (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL)",
	} {
		if _, err := db.Exec(create); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	for query, statement := range map[string]**sql.Stmt{
		"INSERT INTO events VALUES (?, ?)":                  &s.insert,
		"INSERT OR REPLACE INTO acks VALUES (?, ?)":         &s.acked,
		"INSERT OR REPLACE INTO head VALUES (1, ?)":         &s.head,
		"DELETE FROM events WHERE sequence BETWEEN ? AND ?": &s.drop,
	} {
		if *statement, err = db.Prepare(query); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return newGrouped(s), nil
}

func (s *sqliteStore) commit(first uint64, batch []event, acks []ack) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	if err := s.fill(tx, first, batch, acks); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (s *sqliteStore) fill(tx *sql.Tx, first uint64, batch []event, acks []ack) error {
	insert, acked := tx.Stmt(s.insert), tx.Stmt(s.acked)
	last := first
	for i, e := range batch {
		last = first + uint64(i)
		if _, err := insert.Exec(int64(last), record(e)); err != nil {
			return err
		}
	}
	for _, a := range acks {
		if _, err := acked.Exec(string(a.uid), int64(a.sequence)); err != nil {
			return err
		}
	}
	if from, to := s.trim.next(last); from < to {
		if _, err := tx.Stmt(s.drop).Exec(int64(from), int64(to-1)); err != nil {
			return err
		}
	}
	_, err := tx.Stmt(s.head).Exec(int64(last))
	return err
}

func (s *sqliteStore) close() error { return s.db.Close() }

// boltBatch is what most programs with bbolt and many writers do.
type boltBatch struct {
	db *bolt.DB
}

func openBoltBatch(dir string) (engine, error) {
	db, err := bolt.Open(filepath.Join(dir, "batch.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err1 := tx.CreateBucket([]byte("events"))
		_, err2 := tx.CreateBucket([]byte("acks"))
		return errors.Join(err1, err2)
	})
	return &boltBatch{db: db}, err
}

func (b *boltBatch) append(e event) error {
	value := record(e)
	return b.db.Batch(func(tx *bolt.Tx) error {
		events, acks := tx.Bucket([]byte("events")), tx.Bucket([]byte("acks"))
		n, err := events.NextSequence()
		if err != nil {
			return err
		}
		if n > retained {
			if err := events.Delete(number(n - retained)); err != nil {
				return err
			}
		}
		return errors.Join(events.Put(number(n), value), acks.Put([]byte(e.uid), number(n)))
	})
}

func (b *boltBatch) close() error { return b.db.Close() }
