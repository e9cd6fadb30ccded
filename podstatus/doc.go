// SPDX-License-Identifier: Apache-2.0

// Package podstatus holds the rules that a pod status obeys on its way from the
// program that runs a pod to the API server, as pure functions: no I/O, no
// clock, no lock, no goroutine. Whoever needs the time passes it in.
//
// The rules and their numbers are those of the semantics document of this
// project. Where each group lives:
//
//	rules        file            what
//	1-4, 57      ownership.go    static and mirror pods, owned and shared conditions
//	8-15, 49-55  update.go       the path every update takes: Compute, ComputeTerminate
//	16-22        container.go    readiness and startup of one container
//	23-27        volume.go       health of one volume
//	28-38        resize.go       the two resize slots
//	39-48        terminate.go    what a terminated pod looks like
//	53           termination.go  containers that ended with this update
//	58-60        equal.go        what counts as a difference
//	61-66        normalise.go    the one spelling of a status that is stored and compared
//	67-72        transition.go   which container states may follow which
//	73-76        conditions.go, runtime.go  conditions computed from containers and sandboxes
//	77-83, 91    merge.go        what is sent, given what the server has
//	-            codec.go        status bytes: Kubernetes protobuf
//
// An update flows through the package like this:
//
//	SetReady, SetStarted,           Terminate
//	SetVolumeHealth, a producer         │
//	        │                           │
//	        ▼                           ▼
//	     Compute                 ComputeTerminate      check, stamp, normalise, compare
//	        └────────────┬──────────────┘
//	                     ▼
//	                  Encode                           journal
//	                     ▼
//	                 MergeLive                         what the API server gets
//
// # Sharing
//
// No function writes to an argument, and no result shares memory with one,
// except FindCondition, which points into its argument on purpose. All
// functions may be called concurrently as long as nobody writes to the
// arguments meanwhile.
package podstatus
