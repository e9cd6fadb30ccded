// SPDX-License-Identifier: Apache-2.0

package logkey

// Keys of slog attributes.
const (
	Component    = "component"
	Namespace    = "namespace"
	Name         = "name"
	UID          = "uid"
	Version      = "version"
	AckedVersion = "ackedVersion"
	Sequence     = "sequence"
	Epoch        = "epoch"
	Kind         = "kind"
	Reason       = "reason"
	Path         = "path"
	Attempt      = "attempt"
	Wait         = "wait"
	Code         = "code"
	Err          = "err"

	Node    = "node"
	Mode    = "mode"
	Pods    = "pods"
	Pending = "pending"
	Events  = "events"
	Bytes   = "bytes"
	Address = "address"
	PeerUID = "peerUID"
	PeerPID = "peerPID"
	Server  = "server"
	Count   = "count"
	Unclean = "unclean"
	Stack   = "stack"

	Permissions = "permissions"
)
