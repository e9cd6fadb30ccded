// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an HTTP API server for pods, good enough for client-go's
// typed clientset, its reflectors and informers. Tests use it in place of a
// cluster, and so does the demo. It imports no other package of this module.
//
// It promises the behaviour of a real kube-apiserver for what a node agent does
// to pods: LIST (paged), WATCH (bookmarks, initial events, 410), GET, POST, PUT,
// PATCH (strategic merge, merge, JSON patch) and DELETE (graceful, with
// preconditions) in JSON and Kubernetes protobuf, the status subresource with
// its validation, and errors as metav1.Status. The suite in internal/conformance
// runs against this server and against a real one, so that the two agree.
//
//	client ──HTTP──▶ fault? ──▶ handler ──▶ store ──▶ event window ──▶ watches
//	                   │           │          ▲
//	                   └── log ◀───┘          └── Put, Mutate, Hide, … (behind the client's back)
//
// What a real server doesn't have:
//
//   - Faults: [Server.Inject] answers with a chosen code, waits, hangs, or cuts
//     the connection. [Server.NetworkDown] refuses every connection and cuts the
//     open ones until [Server.NetworkUp].
//   - Changes behind the client's back: [Server.Put], [Server.Mutate],
//     [Server.SetStatus], [Server.Remove], [Server.Hide], [Server.Restore].
//   - A log of all requests, [Server.Requests], and of all accepted statuses,
//     [Server.StatusHistory].
//
// What it lacks: other resources than pods, namespaces as objects (any name
// will do), admission, authentication, server-side apply, managed fields, dry
// run, tables and CBOR. A request for one of these is refused, never ignored.
//
// [Listen] serves on TCP, [ListenInMemory] over net.Pipe (for testing/synctest:
// all waits are durable and all timers come from package time), and [New] gives
// only a [Server.Handler].
//
// All methods may be called concurrently. Objects that go in or come out are
// copies. Memory is bounded by the pods, Options.EventWindow,
// Options.RequestLog and Options.StatusLog.
package fakeapi
