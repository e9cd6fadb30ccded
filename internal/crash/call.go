// SPDX-License-Identifier: Apache-2.0

package crash

import "syscall"

// Syscall names a kind of system call that can be intercepted.
type Syscall string

// The calls that change or order what is on a disk, and the one that locks it.
const (
	Fsync     Syscall = "fsync"
	Fdatasync Syscall = "fdatasync"
	Pwrite    Syscall = "pwrite64"
	Fallocate Syscall = "fallocate"
	Ftruncate Syscall = "ftruncate"
	Link      Syscall = "linkat"
	Rename    Syscall = "renameat"
	Unlink    Syscall = "unlinkat"
	Flock     Syscall = "flock"
)

// Call is one system call that waits for its handler.
type Call struct {
	Name Syscall
	// FD is the descriptor that the call is about, -1 if it names paths.
	FD int
	// Path is what FD is open on, empty without one.
	Path string
	// Offset is where a pwrite64 goes, Length how many bytes it has.
	Offset, Length int64
}

// Short, given by a handler in place of an errno, makes a pwrite64 write the
// first half of its bytes and say so, as on a disk that is about to be full.
const Short = syscall.Errno(1 << 16) // beyond any errno of a system

// Handler decides about a call: 0 lets it pass, Short lets half of it pass, any
// other errno is what the caller gets instead of it. Handlers run one at a time,
// on a goroutine of their own, and must not make intercepted calls themselves.
type Handler func(Call) syscall.Errno
