// SPDX-License-Identifier: Apache-2.0

// Package agent is the statusstore process: it wires the manager, its API server
// client and the HTTP interface together and owns their lifetime.
//
//	check the data directory → journal (its lock) → socket → ready
//	stop accepting → send what is pending → flush acks → close → remove the socket
//
// The journal's lock is taken before the socket is touched: a second agent on
// the same data directory ends without disturbing the first.
//
// # Access
//
// The socket has mode 0600 from the moment it exists, and a peer must be root or
// the agent's own user; with Config.SocketGroup it has mode 0660, and members of
// the group are let in too. The TCP listener, if there is one, reads only.
//
// # What survives a crash
//
// All that was accepted (G1): it is in the journal. A socket that a dead agent
// left behind is replaced.
package agent
