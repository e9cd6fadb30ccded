// SPDX-License-Identifier: Apache-2.0

// Package podsapi serves the kubelet's Pods API (gRPC, k8s.io/kubelet/pkg/apis/pods,
// v1alpha1) from a durable store: programs on the node ask here for pods and their
// newest statuses, whether the API server can be reached or not.
//
// # Promise
//
// What is served is durable: no client sees a status that a crash could take
// back. A watcher gets every pod that is there, then INITIAL_SYNC_COMPLETE, then the
// newest state of each pod that changed. It may miss versions that were replaced before
// they were sent, but never the last one, and never a removal.
//
// # Picture
//
//	ListPods, GetPod ──▶ Server ──▶ Store: entries, pods           (manager.Manager)
//	WatchPods ◀── stream ◀── newest state ◀── "these pods changed" ◀── projection.Watcher
//
// # Which pods, and what of them
//
// Those with a stored status, ordered by UID. The status is the stored one; the rest of
// the object is what the store's pod source knows. If it knows nothing, the object has
// a namespace, a name and a UID. A static pod has its own UID; its mirror's is not found.
// A pod that was recreated under its name is another pod: both are served until the store
// drops the old one.
//
// # Concurrency
//
// All methods may be called concurrently. A watcher that does not read costs its own
// goroutine and one small note per pod; writers and other watchers never wait for it,
// and it is not disconnected. New starts no goroutine; Serve joins those that it started.
//
// # What survives a crash
//
// Whatever the store keeps. Streams end with the process; a client that connects again
// gets everything anew.
package podsapi
