// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

const (
	pageSize   = 4096
	sectorSize = 512 // what a disk writes wholly or not at all
)

// Inode identifies a file apart from its names.
type Inode string

// File is the content of a file, as numbers of pages in a Log. Pages beyond the
// size are there as soon as the file has the size that it lacks.
type File struct {
	Size  int64
	Pages []int32
}

// Tree is a flat directory: names, and the files that they, or nothing any more,
// refer to.
type Tree struct {
	Names map[string]Inode
	Files map[Inode]File
}

func newTree() Tree { return Tree{Names: map[string]Inode{}, Files: map[Inode]File{}} }

func (t Tree) clone() Tree { return Tree{maps.Clone(t.Names), maps.Clone(t.Files)} }

// same reports whether a power cut makes no difference between the two.
func (t Tree) same(u Tree) bool {
	if !maps.Equal(t.Names, u.Names) {
		return false
	}
	for _, inode := range t.Names {
		a, b := t.Files[inode], u.Files[inode]
		if a.Size != b.Size || !slices.Equal(a.Pages, b.Pages) {
			return false
		}
	}
	return true
}

// Log is a recording. Each page is stored once, whatever file it is in.
type Log struct {
	Pages  [][]byte // page 0 is all zeros
	Stages []Stage

	known map[[sha256.Size]byte]int32
}

func newLog() *Log {
	l := &Log{known: map[[sha256.Size]byte]int32{}}
	l.intern(make([]byte, pageSize))
	return l
}

// intern returns the number of a page of at most pageSize bytes.
func (l *Log) intern(page []byte) int32 {
	if len(page) < pageSize {
		page = append(bytes.Clone(page), make([]byte, pageSize-len(page))...)
	}
	sum := sha256.Sum256(page)
	id, ok := l.known[sum]
	if !ok {
		id = int32(len(l.Pages))
		l.Pages = append(l.Pages, bytes.Clone(page))
		l.known[sum] = id
	}
	return id
}

// file stores a content. Pages equal to those of like are not hashed again.
func (l *Log) file(content []byte, like File) File {
	f := File{Size: int64(len(content))}
	for at := 0; at < len(content); at += pageSize {
		page := content[at:min(at+pageSize, len(content))]
		i := len(f.Pages)
		if i < len(like.Pages) && bytes.Equal(page, l.Pages[like.Pages[i]]) {
			f.Pages = append(f.Pages, like.Pages[i])
			continue
		}
		f.Pages = append(f.Pages, l.intern(page))
	}
	return f
}

// capture reads a directory as it is. Directories inside are not looked at.
func (l *Log) capture(dir string, before Tree) (Tree, error) {
	t := newTree()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return t, fmt.Errorf("capture directory: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		inode, err := inodeOf(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return t, fmt.Errorf("capture %s: %w", path, err)
		}
		t.Names[e.Name()] = inode
		if _, ok := t.Files[inode]; ok {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return t, fmt.Errorf("capture %s: %w", path, err)
		}
		t.Files[inode] = l.file(content, before.Files[inode])
	}
	return t, nil
}
