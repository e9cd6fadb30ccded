// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Image is a directory that a power cut could have left.
type Image struct {
	// What says how it was drawn.
	What string
	// TornAt is where a sector was torn inside, by name; most images have none.
	TornAt map[string]int64

	names map[string]Inode
	files map[Inode][]byte
}

// pick says which of the changed sectors of a file are new.
type pick uint8

const (
	pickOld     pick = iota // none
	pickNew                 // all
	pickPages               // whole pages at random
	pickSectors             // sectors at random
	pickAllBut              // all but one
	pickOnly                // only one
	pickPrefix              // in the order of the file, up to some place
	pickSuffix              // from some place on
	pickTorn                // all, but one of them torn inside
	picks
)

var pickNames = [picks]string{"nothing new", "all new", "pages at random", "sectors at random", "all but one sector", "one sector only",
	"a prefix", "a suffix", "one sector torn inside"}

// Image draws one image of the stage. The same random source gives the same one.
func (l *Log) Image(s *Stage, rng *rand.Rand) *Image {
	img := &Image{names: map[string]Inode{}, files: map[Inode][]byte{}, TornAt: map[string]int64{}}
	// A power cut among changes of names is rarer than one among writes; both
	// ends are drawn most often.
	chance := []float64{0, 1, 0.5}[rng.IntN(3)]
	for _, name := range sorted(s.Durable.Names, s.Volatile.Names) {
		from := s.Durable.Names
		if rng.Float64() < chance {
			from = s.Volatile.Names
		}
		if inode, ok := from[name]; ok {
			img.names[name] = inode
		}
	}
	for _, name := range sorted(img.names) {
		inode := img.names[name]
		if _, done := img.files[inode]; !done {
			l.mix(img, name, s.Durable.Files[inode], volatileOf(s, inode), rng)
		}
	}
	return img
}

func sorted(sets ...map[string]Inode) []string {
	all := map[string]Inode{}
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return slices.Sorted(maps.Keys(all))
}

func volatileOf(s *Stage, inode Inode) File {
	if f, ok := s.Volatile.Files[inode]; ok {
		return f
	}
	return s.Durable.Files[inode]
}

// mix draws the content of one file.
func (l *Log) mix(img *Image, name string, before, after File, rng *rand.Rand) {
	size := before.Size
	switch {
	case before.Size == after.Size:
	case len(before.Pages) == 0 && rng.IntN(3) == 0:
		// Never synced: it may have been extended bit by bit.
		size = rng.Int64N(after.Size/sectorSize+1) * sectorSize
	case rng.IntN(3) > 0:
		size = after.Size
	}
	content := make([]byte, max(before.Size, after.Size, size)+pageSize)
	var changed []int64 // offsets of sectors
	for i := range max(len(before.Pages), len(after.Pages)) {
		at := int64(i) * pageSize
		old, now := l.page(before, i), l.page(after, i)
		copy(content[at:], old)
		for s := 0; s < pageSize; s += sectorSize {
			if !bytes.Equal(old[s:s+sectorSize], now[s:s+sectorSize]) {
				changed = append(changed, at+int64(s))
			}
		}
	}
	p := pick(rng.IntN(int(picks)))
	if len(changed) == 0 {
		p = pickOld
	}
	img.What += fmt.Sprintf("%s: %s of %d changed sectors; ", name, pickNames[p], len(changed))
	renew := func(at int64) { copy(content[at:at+sectorSize], l.sector(after, at)) }
	for _, at := range p.draw(changed, rng) {
		renew(at)
	}
	if p == pickTorn {
		at := changed[rng.IntN(len(changed))]
		cut := int64(1 + rng.IntN(sectorSize-1))
		if rng.IntN(4) > 0 {
			cut = int64(1 + rng.IntN(79)) // in what a page's header and a meta page take
		}
		copy(content[at+cut:at+sectorSize], l.sector(before, at)[cut:])
		img.TornAt[name] = at
	}
	img.files[img.names[name]] = content[:size]
}

// draw returns the offsets of the sectors that are new.
func (p pick) draw(changed []int64, rng *rand.Rand) []int64 {
	some := func(keep func(i int) bool) (out []int64) {
		for i, at := range changed {
			if keep(i) {
				out = append(out, at)
			}
		}
		return out
	}
	switch p {
	case pickNew, pickTorn:
		return changed
	case pickPages:
		coin := map[int64]bool{}
		return some(func(i int) bool {
			page := changed[i] / pageSize
			if _, ok := coin[page]; !ok {
				coin[page] = rng.IntN(2) == 0
			}
			return coin[page]
		})
	case pickSectors:
		chance := []float64{0.1, 0.5, 0.9}[rng.IntN(3)]
		return some(func(int) bool { return rng.Float64() < chance })
	case pickAllBut, pickOnly:
		one := rng.IntN(len(changed))
		return some(func(i int) bool { return (i == one) == (p == pickOnly) })
	case pickPrefix:
		return changed[:rng.IntN(len(changed)+1)]
	case pickSuffix:
		return changed[rng.IntN(len(changed)+1):]
	default:
		return nil
	}
}

func (l *Log) page(f File, i int) []byte {
	if i < len(f.Pages) {
		return l.Pages[f.Pages[i]]
	}
	return l.Pages[0]
}

func (l *Log) sector(f File, at int64) []byte {
	return l.page(f, int(at/pageSize))[at%pageSize:][:sectorSize]
}

// Write puts the image into a directory, which it empties first.
func (img *Image) Write(dir string) error {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return fmt.Errorf("write crash image: %w", err)
	}
	first := map[Inode]string{}
	for _, name := range slices.SortedFunc(maps.Keys(img.names), cmp.Compare) {
		path, inode := filepath.Join(dir, name), img.names[name]
		var err error
		if other, ok := first[inode]; ok {
			err = os.Link(other, path)
		} else {
			first[inode] = path
			err = writeSparse(path, img.files[inode])
		}
		if err != nil {
			return fmt.Errorf("write crash image: %w", err)
		}
	}
	return nil
}

// writeSparse leaves out pages of zeros: most of a journal that has just grown.
func writeSparse(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(int64(len(content)))
	var zeros [pageSize]byte
	for at := 0; at < len(content) && err == nil; at += pageSize {
		page := content[at:min(at+pageSize, len(content))]
		if !bytes.Equal(page, zeros[:len(page)]) {
			_, err = f.WriteAt(page, int64(at))
		}
	}
	return errors.Join(err, f.Close())
}
