// SPDX-License-Identifier: Apache-2.0

// Package soak runs the store for as long as nodes do, or longer: millions of
// events, a month without an API server, a disk that is full all the time. What
// must hold is in the journal's promises: the file stays bounded (G7), each pod's
// newest status is kept, and what ends a pod fits even when nothing else does
// (G10).
//
// The API server is internal/fakeapi, everything else is the real thing. A month
// takes half a minute: time is that of testing/synctest.
//
// Settings, all optional:
//
//	STATUSSTORE_SOAK_EVENTS  how many events the long run appends, 2,000,000 by
//	                         default.
//	TMPDIR                   where journals lie. By default /dev/shm, where that
//	                         exists. On a disk each commit waits for two syncs:
//	                         count with a minute per 100,000 events.
package soak
