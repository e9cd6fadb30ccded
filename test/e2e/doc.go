// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the statusstore agent against a real kube-apiserver with
// etcd, from outside: the agent is a child process, its users speak to its
// socket, and the API server is read with client-go. Who sent which request is
// taken from the server's audit log.
//
// One control plane serves all tests. Some of them take it down, so tests run
// one after the other; each has a node and a namespace of its own.
//
// Settings, all optional:
//
//	STATUSSTORE_E2E_DIR   where control planes and agents keep their files; kept
//	                      after the run. Default: a temporary folder.
//	CONTROLPLANE_CACHE    where the API server's program is kept between runs.
package e2e
