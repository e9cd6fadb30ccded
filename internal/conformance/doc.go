// SPDX-License-Identifier: Apache-2.0

// Package conformance is one test suite for two API servers: a real
// kube-apiserver and the one in internal/fakeapi. It holds what the syncer
// relies on, written against client-go, so that the fake can't drift from the
// real one.
//
// The package's own tests run it against fakeapi, and against the cluster in
// the kubeconfig named by STATUSSTORE_KUBECONFIG if that is set. The cluster
// must have no kubelet for the node and no controllers that touch bare pods;
// pods are created in the namespace default and removed again:
//
//	STATUSSTORE_KUBECONFIG=DIR/kubeconfig go test ./internal/conformance/
package conformance
