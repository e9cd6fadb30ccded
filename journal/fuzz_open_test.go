// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen writes bytes over a small journal, or cuts it, and opens what has become
// of it: an error with the file's name, or the old data. The layout of the journal
// is always the same; its times are not.
func FuzzOpen(f *testing.F) {
	image := smallJournal(f)
	dir, err := os.MkdirTemp("/dev/shm", "statusstore-fuzz-")
	if err != nil {
		dir = f.TempDir()
	}
	f.Cleanup(func() { os.RemoveAll(dir) })
	states := statesOf(f, dir, image, smallPage)
	whole := uint16(len(image))
	f.Add(uint16(0), []byte{}, whole)
	f.Add(uint16(16), []byte{0, 0, 0, 0}, whole)             // signature
	f.Add(uint16(smallPage+40), []byte{1}, whole)            // freelist of the second meta page
	f.Add(uint16(2*smallPage+10), []byte{0xff, 0xff}, whole) // count
	f.Add(uint16(3*smallPage+12), []byte{3}, whole)          // overflow
	f.Add(uint16(4*smallPage), bytes.Repeat([]byte{0}, smallPage), whole)
	f.Add(uint16(5*smallPage+16), image[6*smallPage+16:7*smallPage], whole)
	f.Add(uint16(6*smallPage), image[5*smallPage:6*smallPage], whole-smallPage)
	f.Fuzz(func(t *testing.T, at uint16, data []byte, size uint16) {
		b := bytes.Clone(image[:min(len(image), int(size))])
		if int(at) < len(b) {
			copy(b[at:], data)
		}
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := examineReader(path, states)
		if err != nil {
			t.Fatal(err)
		}
		if got == harmless || at%8 == 0 { // a writer takes ten times as long
			if err := os.WriteFile(path+MarkSuffix, []byte(markText), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := examineWriter(path, states); err != nil {
				t.Fatal(err)
			}
		}
	})
}
