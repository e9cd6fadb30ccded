// SPDX-License-Identifier: Apache-2.0

// Package httpapi is the agent's HTTP interface: Kubernetes' own shapes where
// Kubernetes has one, so that client-go and kubectl can read from a node while
// the cluster is away, and /statusstore/v1 where it has none.
//
//	/api/v1/pods, /api/v1/namespaces/{ns}/pods[/{name}[/status]]   read, watch, set
//	/statusstore/v1/…                                              calls, records, events
//	/healthz /livez /readyz /metrics /version /api /apis           what clients ask for
//
// A resourceVersion on this interface is a sequence of the journal: that of the
// newest event for a pod, the head for a list.
//
// # Promises
//
// 200 for a write means that it is durable (G1). Every error is a metav1.Status,
// and what was refused changed nothing (G9).
//
// # Slow clients
//
// An answer is computed from memory, or from the journal in short read
// transactions, and none is held while a client reads. Each write to a client
// must make progress within WriteTimeout (30 s), else the connection is closed. A watch
// has no buffer of its own: it follows the journal, and one that falls behind
// what retention keeps ends with 410.
//
// # Concurrency
//
// Handlers keep no state between requests but metrics. Watches and event
// streams run on the goroutine of their request and end with it.
package httpapi
