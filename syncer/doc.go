// SPDX-License-Identifier: Apache-2.0

// Package syncer brings the statuses of the projection to the API server.
//
// # Promise
//
//   - G3: after a restart only pods whose status on the server differs are sent:
//     one LIST (in pages), one WATCH, a PATCH per difference, no GET. Nothing is
//     sent before that LIST is complete.
//   - G4: per pod there is one request at a time, and an older version is never
//     sent after a newer one. Finished, terminal and Ready-changing pods go first.
//   - G5: acks are hints. Every watch event and every pass compares what the
//     server holds with what it should hold.
//   - G6: a PATCH carries the UID, a DELETE has it as a precondition.
//   - G11: a pod that is refused, or whose requests hang, delays no other pod.
//
// # Picture
//
//	Changes ─┐
//	LivePods ┼─▶ queue of UIDs ─▶ N workers: newest entry + live pod ─▶ decide
//	timers ──┤   (two lanes)                                              │
//	pass ────┘        ▲                  ack ◀── response ◀── PATCH ◀─────┤
//	                  └── retry later ◀── outcome ◀── error               ├─▶ DELETE ─▶ Drop
//	                                                                      └─▶ nothing to do, ack
//
// Everything is level-triggered: the queue holds UIDs and a worker reads the
// newest state when it runs, so wake-ups coalesce and any of them may be
// repeated. [decide] is pure; [classify] is the only place that looks at status
// codes.
//
// # What the server answered
//
//	404, pod not there  keep the status; ask again after 1 s, 2 s, 4 s … 5 min, or
//	                    at once when the watch shows the pod
//	409, other UID      one GET; a recreated pod's old status is dropped
//	422                 for a version's first one GET: the patch may have been made
//	                    for an older object; if it wasn't, as below
//	422, 403, …         failing: 1 s, 2 s, 4 s … 5 min; a new version cuts it short
//	429                 wait as long as Retry-After says, at most 5 min
//	5xx, 401, network,  the pod waits at most 5 s while nothing gets through; if
//	timeout             three pods are concerned, or no connection can be made, a
//	                    circuit opens: one probe a second, and everything pending
//	                    as soon as one succeeds. A pod that fails while others
//	                    don't waits longer and longer, up to 5 min
//
// All waits have ±10 % jitter.
//
// A server that accepts a status but stores another, for lack of a feature, is
// told the same thing once per run. Another writer who keeps changing a status
// back is answered after 1 s, 2 s, 4 s … 10 s.
//
// # Requests for the live pods
//
// [LivePods] uses a client-go reflector in its LIST + WATCH form, not the
// streaming WatchList that client-go prefers since 1.35: the cost of a restart
// stays one LIST and one WATCH on every server, where a stream costs a failed
// WATCH more on those without the feature. The LIST after a start asks for the
// newest state (no resourceVersion) because a decision against a stale one could
// overwrite a terminal phase. When a watch ends, as each does after some minutes,
// one LIST with limit 1 asks whether the server still knows where to go on; if it
// couldn't be reached meanwhile, all is listed anew (G5: it may have been restored
// from a backup).
//
// # Concurrency
//
// All methods of [Syncer] and [LivePods] may be called concurrently. Pods that
// come from LivePods and entries that come from the projection are shared and
// must not be modified. Build the Syncer after the projection is loaded and before
// LivePods.Run is called: then the first LIST is known to be newer than every
// entry, and needs no GET to confirm that a pod was recreated.
//
// # After a crash
//
// The syncer itself keeps nothing. Acks that were not flushed cost a comparison
// with the first LIST, not a request. Deletions resume from the durable finished
// mark. Backoff starts anew.
package syncer
