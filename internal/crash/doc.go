// SPDX-License-Identifier: Apache-2.0

// Package crash is what tests need to take a disk away: it records what a
// program has made durable and what not, builds the directories that a power cut
// could have left, fails single system calls, and runs the process that has to
// survive them.
//
// # Recording
//
// A Recorder watches a directory. At each call that orders writes (fsync,
// fdatasync, link, rename, unlink) it holds the call and notes a Stage:
//
//	Durable    what a power cut at this moment certainly leaves
//	Volatile   what the program has written until now
//
// A sync moves its file, or the names of the directory, from volatile to
// durable. Calls are held by seccomp user notification, inside the process that
// makes them, so this needs Linux; without it a Stage can be made from the file
// before and after a commit of bbolt, whose order of writes is known.
//
// # Images
//
// Stage.Image draws a directory that a power cut in that stage could leave: each
// changed sector of 512 bytes old or new, sizes old or new, each name old or new,
// now and then one sector torn inside. A disk that acknowledges flushes it did
// not do can leave more than that. What was written twice between two syncs
// appears only as it was at the second: the first is not seen.
//
// # Faults
//
// Intercept gives a handler each call of a few kinds; it may let it pass, make
// it fail, hold it, or kill the process right before it. A filter stays for the
// life of the process, so this is for child processes: see Child and Self.
//
// The package knows nothing of journals; its tests do.
package crash
