// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

const creatingSuffix = ".creating-"

// MarkSuffix names the initialised mark: a small file that stays beside the
// journal. With it, a missing or empty journal is a lost one; without it, a new
// one.
const MarkSuffix = ".initialised"

// about is written once, at creation.
type about struct {
	Node    string
	Created time.Time
}

func (a about) encode(s *sealer) []byte {
	s.begin(2)
	s.string(a.Node)
	s.time(a.Created)
	return s.finish(keyAbout)
}

func decodeAbout(value []byte) (about, error) {
	o, err := unseal(keyAbout, value)
	if err != nil {
		return about{}, err
	}
	a := about{Node: o.string(), Created: o.time()}
	return a, o.end()
}

// create makes an empty journal at path. A crash at any step leaves either no
// file under that name or a complete one:
//
//  1. a temporary file is filled and synced
//  2. it is linked to its name, which fails if another process was first
//  3. the directory is synced
//  4. the initialised mark is written and synced
func create(path string, o Options) error {
	dir := filepath.Dir(path)
	if err := removeLeftovers(dir, filepath.Base(path)+creatingSuffix); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+creatingSuffix)
	if err != nil {
		return fmt.Errorf("create journal %s: %w", path, err)
	}
	temp := f.Name()
	f.Close()
	defer os.Remove(temp)
	if err := fill(temp, about{Node: o.Node, Created: time.Now()}, o); err != nil {
		return fmt.Errorf("create journal %s: %w", path, err)
	}
	if err := publish(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create journal %s: %w", path, err)
	}
	return nil
}

func fill(path string, a about, o Options) error {
	db, err := openBolt(path, boltOptions(o))
	if err != nil {
		return err
	}
	return guard(path, func() error {
		err := db.Update(func(tx *bolt.Tx) error {
			for _, name := range buckets {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			s, meta := newSealer(), tx.Bucket(bucketMeta)
			return errors.Join(
				meta.Put(keyMagic, []byte(magic)),
				meta.Put(keyFormat, formatValue(Format)),
				meta.Put(keyAbout, a.encode(s)),
				meta.Put(keyHead, head{Sums: sums{known: true}}.encode(s)),
				meta.Put(keyOpened, openedState{clean: true}.encode(s)),
			)
		})
		return errors.Join(err, db.Close())
	})
}

// publish gives a finished file its name without replacing another.
func publish(temp, path string) error {
	if err := os.Link(temp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		// Some file systems have no links. The lock taken at open still keeps
		// two processes apart; only the race to be first is less strict.
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

// removeLeftovers deletes the temporary files that a crash left, and nothing else.
func removeLeftovers(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("open journal in %s: %w", dir, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("open journal in %s: %w", dir, err)
			}
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MoveAside renames a damaged journal so that a new one can be created in its
// place. It returns the new name, which carries the time. The bytes stay. Of a
// missing journal only the initialised mark goes, and the name is empty.
func MoveAside(path string, now time.Time) (string, error) {
	aside := path + ".damaged-" + now.UTC().Format("20060102T150405.000Z")
	switch err := os.Rename(path, aside); {
	case errors.Is(err, fs.ErrNotExist):
		aside = ""
	case err != nil:
		return "", fmt.Errorf("move journal aside: %w", err)
	}
	if err := os.Remove(path + MarkSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return aside, fmt.Errorf("move journal aside: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return aside, fmt.Errorf("move journal aside: %w", err)
	}
	return aside, nil
}
