// SPDX-License-Identifier: Apache-2.0

// Package journal keeps versioned events of pods in one bbolt file: durable
// before Append returns (G1), with versions that only grow per pod UID (G2),
// bounded in size (G7), and closed to damaged or foreign files (G8). It knows
// nothing of Kubernetes but the UID type: a status is bytes to it.
//
// # The file
//
//	meta     magic, format, about, head, opened
//	events   sequence → record       append-only, trimmed from the front
//	pods     UID      → index        newest event and version of each pod
//	acks     UID      → ack          what the API server is known to hold
//	objects  UID      → pod object   what the agent was last told of the pod
//	openings sequence → epoch        which events are opened ones
//
// docs/format.md specifies each byte. All values carry a CRC-32C over key and
// value, since the engine does not notice changed bytes.
//
// # A commit, step by step
//
//  1. Callers queue; the one who finds no commit in flight leads (group commit
//     without a goroutine, no artificial delay).
//  2. The leader assigns sequences and versions in a plan, in memory of its own.
//  3. One transaction: events, what retention drops, objects, acks, now and then
//     the index, and the head. bbolt writes the pages, syncs, writes one of two
//     meta pages, syncs.
//  4. Only then the plan becomes the journal's memory, OnCommit gets the events,
//     the head moves, and the callers return.
//
// A crash before the second sync leaves the state before the commit; nobody was
// told otherwise. A failed commit is settled by reopening the file and comparing
// heads: it either happened as a whole, or used up no sequence and no version.
//
// # Opening
//
// Opening costs O(pods) and, of history, only the branch pages of the tree, about a
// hundredth of the file. It reads the index, the events that came after it was
// written (about 1024 at most), and each pod's newest event; of a copy that was put
// back it reads all. It checks the lock, both meta pages, the file's length and the
// layout of pages before the engine maps anything, and all that it will serve before
// it writes anything.
//
// # Concurrency
//
// All methods may be called concurrently. Reads are short transactions; an
// iterator holds none while its caller works. No goroutine is started.
package journal
