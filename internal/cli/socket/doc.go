// SPDX-License-Identifier: Apache-2.0

// Package socket is the client side of an agent's unix socket, as the commands
// and the demo use it. Programs that embed Kubernetes' own client don't need it:
// client-go works on the socket with rest.Config.Dial.
//
// Every refusal by the agent is an error of type *errors.StatusError from
// apimachinery, so that apierrors.IsNotFound and the like work on it. An agent
// that isn't there is a *NotRunningError.
//
// A Client may be used concurrently. It starts no goroutine of its own; Close
// gives up the idle connections.
package socket
