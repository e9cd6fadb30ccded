// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

const (
	// faultAround is what the kernel maps at once around a page that is touched.
	faultAround = 64 << 10
	// maxTouched bounds what of the mapped file counts as the process's memory.
	maxTouched = 32 << 20
)

// touch counts what reading a range of the file maps.
func (s *File) touch(from, to uint64) {
	from, to = from/faultAround*faultAround, (to+faultAround-1)/faultAround*faultAround
	s.touched.Add(int64(to - from))
}

// release gives mapped pages back when there are many. They stay in the kernel's
// cache: whoever touches one again finds it there.
func (s *File) release() {
	if s.touched.Load() < maxTouched {
		return
	}
	s.touched.Store(0)
	_ = unix.Madvise(s.data, unix.MADV_DONTNEED) // advice
}

// faults makes an error of a fault: a mapped file that is cut by somebody, or
// that the disk can't read. To be called and deferred in each goroutine that
// reads the map.
func faults(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			*err = unsound("reading the file: %w", p)
		default:
			panic(p)
		}
	}
}
