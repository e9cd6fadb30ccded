// SPDX-License-Identifier: Apache-2.0

// Package demo shows the promises of statusstore on a small scale, and checks
// them: an API server in this process, the agent as a child process, pods whose
// statuses change.
//
//	start, first statuses, all acked
//	network down ─▶ several writers ─▶ SIGKILL in the middle
//	read the file ─▶ start again ─▶ what is there, with the network still down
//	network up ─▶ all acked: which requests did that take?
//	SIGKILL, network down, start again: are the acks still known?
//	network up: one LIST, one WATCH and nothing else
//
// The scenario only gathers evidence; [judge] decides from it, so that each
// verdict can be tested with evidence of a broken agent. What the writers were
// told counts as accepted; what the agent says afterwards is compared with it,
// and with the file and the API server, never with itself.
//
// A demo owns its child process, its server and its temporary directory, and all
// are gone when Run returns, also on an error.
package demo
