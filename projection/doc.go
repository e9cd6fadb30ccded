// SPDX-License-Identifier: Apache-2.0

// Package projection folds the journal's events into the newest state of each
// pod: its status, version and acked version.
//
//	journal.Event ──fold──▶ Entry            one pod, immutable
//	                          │
//	            State ◀───────┴───────▶ Projection
//	   replay, time travel, models      live: fed by commits, read by all
//
// The fold is pure and there is one of it. Every set and finished event carries
// the pod's whole state, so folding a pod's newest event alone gives the same
// entry as folding its history (only PendingSince is then the time of the newest
// event). Opening a journal therefore costs O(pods), see Projection.Load.
//
// # Concurrency
//
// A Projection may be used from any goroutine. Reads take one short read lock,
// never wait for the disk and return shared immutable entries. A State belongs to
// one goroutine at a time.
//
// # What survives a crash
//
// Nothing here is on disk. What Commit is given is durable already, so a reader
// never sees a status that a crash could take back (G1).
//
// # Damage
//
// An event that cannot be folded is reported as an *EventError with its UID and
// sequence, and changes nothing but the head: one bad record hides no other pod.
// Events of kinds that this program does not know are skipped.
package projection
