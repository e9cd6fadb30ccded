// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	rawPage  = 4096
	rawBytes = 64 << 20
)

// rawDisk times the unit.
type rawDisk struct {
	file *os.File
	page []byte
	at   int64
}

// openRawDisk writes the file once, so that no later write allocates.
func openRawDisk(dir string) (*rawDisk, error) {
	f, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	for range rawBytes / len(block) {
		if _, err := f.Write(block); err != nil {
			return nil, fmt.Errorf("fill raw file: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("sync raw file: %w", err)
	}
	return &rawDisk{file: f, page: make([]byte, rawPage)}, nil
}

// measure returns the seconds of n units, each by itself.
func (d *rawDisk) measure(n int) ([]float64, error) {
	times := make([]float64, 0, n)
	for range n {
		d.page[0]++
		begin := time.Now()
		if _, err := d.file.WriteAt(d.page, d.at%rawBytes); err != nil {
			return nil, err
		}
		if err := syscall.Fdatasync(int(d.file.Fd())); err != nil {
			return nil, fmt.Errorf("sync raw file: %w", err)
		}
		times = append(times, time.Since(begin).Seconds())
		d.at += rawPage
	}
	return times, nil
}

func (d *rawDisk) close() error { return d.file.Close() }
