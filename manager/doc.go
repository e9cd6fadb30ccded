// SPDX-License-Identifier: Apache-2.0

// Package manager is the library: a pod status manager whose state survives the
// process. It has the calls of the kubelet's status manager, with a context and
// errors.
//
// # Promise
//
// A call that returned without an error is on disk, and so is the acknowledgement
// of what the API server holds (G1). Readers see durable states only. A call that
// returned an error changed nothing, unless its context ended while the commit was
// in flight: then it may have.
//
// # Picture
//
//	SetPodStatus, SetContainerReadiness, TerminatePod, …
//	      │
//	      ▼   under the pod's lock
//	projection entry ──▶ podstatus (pure) ──▶ one event ──▶ journal.Append ──▶ projection
//	                                                             │                  │
//	      ◀── Change, Outcome, error ────────────────────────────┘      syncer ◀────┘
//
// Open starts no goroutine. Run brings the stored statuses to the API server and
// blocks; without it, or without a client, everything local works all the same.
// A call whose context can end may leave a goroutine behind until its commit is
// over; Close waits for those.
//
// # Embedding
//
// The embedding program brings a PodLookup and a Runtime. Without a PodLookup the
// manager remembers the pods it is given and looks at the live ones. Options are a
// struct whose zero value, Path aside, is the recommended setup.
//
// # Concurrency
//
// All methods may be called concurrently. Calls about one pod follow each other;
// calls about different pods share commits. Arguments are neither changed nor
// kept, results are the caller's own, except projection entries, which are shared
// and immutable. Hooks run without locks on the goroutines of callers.
//
// # What survives a crash
//
// Statuses with start and transition times, ready and started flags, versions,
// finished marks, resize slots (from the pod's first status on), remembered pods,
// and acked versions but for those of the last second. Metric counters start anew
// and are not raised by replay.
package manager
