// SPDX-License-Identifier: Apache-2.0

// Package kubelet puts the stock interface of the kubelet's status manager
// (k8s.io/kubernetes/pkg/kubelet/status, v1.37) on a durable store, so that a
// kubelet, or whatever embeds one's parts, can swap one for the other.
//
// # Promise
//
// The calls do what docs/semantics.md says, which is what the stock manager does
// wherever that is right; a test makes the same calls on both and compares the
// answers, the requests and the resulting pods. A status that was accepted is on
// disk when the call returns.
//
// # Picture
//
//	kubelet ──status.Manager──▶ Manager ──▶ manager.Manager ──▶ journal, API server
//	             ▲                 │ ▲
//	 PodUpdateNotifier ◀───────────┘ └── status.PodManager, PodDeletionSafetyProvider
//	 PodStartupLatencyStateHelper ◀┘     (pod lookup)       (is a phase held back?)
//	 the kubelet's metrics ◀───────┘
//
// # What has no place in the stock interface
//
// Errors: they are logged with the logger of the call, at the stock manager's
// levels, and the call changes nothing. Contexts: a call waits for its commit,
// however long that takes. Both are there on Manager.Store.
//
// # Concurrency
//
// All methods may be called concurrently. New starts no goroutine, Start starts two
// and what manager.Run needs, Close joins them all. Pods that are passed in are
// kept, and only read, until their status is gone. Subscribers and the start-up
// helper are called with no lock held, and should return quickly.
//
// # What survives a crash
//
// What manager.Manager keeps. Metrics count anew, and subscribers are not told
// again of what was told before.
package kubelet
