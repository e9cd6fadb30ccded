// SPDX-License-Identifier: Apache-2.0

// Package subject makes the two status managers that are compared, behind the
// kubelet's own interface: the stock one and contrib/kubelet. Both get a pod
// manager of the kubelet and a rest of it that says as little as possible.
package subject
