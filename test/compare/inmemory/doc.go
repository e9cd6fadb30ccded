// SPDX-License-Identifier: Apache-2.0

// Package inmemory measures what one call costs, without any API server: the stock
// status manager and ours, by status shape, in turn within one run.
//
// Times are medians over single calls, so that a neighbour on the machine does not
// show; allocations are means over all calls. "But the commit" of a changed status
// is what SetPodStatus takes beyond journal.Append of the same event, both on the
// same file system; put it on one in memory, where the commit is short, to see the
// difference best.
package inmemory
