// SPDX-License-Identifier: Apache-2.0

// Package server measures the stock kubelet status manager and ours on one real
// API server: the same pods, the same changes, in turn.
//
// # How
//
//	rounds ─▶ pods are created ─▶ subject ─▶ counter ─▶ cable ─▶ kube-apiserver
//	               │ one goroutine per pod sets statuses            │
//	               └──────────── watch (its own connection) ◀───────┘
//
// A subject is a status.Manager of the kubelet: the stock one, or
// contrib/kubelet. Both are fed and called the same way, through the same kind of
// client. What they send is counted where it leaves the client; what the server
// shows is seen by a watch that belongs to neither. The cable is a TCP proxy that
// can be cut. Ours pays for its own LIST and WATCH, and for its disk.
//
// A status is "visible" when the watch has shown it; the version of a status is the
// restart count of its first container, so going back is seen, too.
package server
