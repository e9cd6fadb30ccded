// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// Entries reads the projection. Entries are immutable. *projection.Projection
// has these methods.
type Entries interface {
	Get(uid types.UID) (*projection.Entry, bool)
	List() []*projection.Entry
}

// Changes tells which entries changed. Watch begins a subscription: wake becomes
// readable (capacity 1) when there is something to take, take returns the UIDs
// that changed or were removed since the last call, each once, and stop ends it.
type Changes interface {
	Watch() (wake <-chan struct{}, take func() []types.UID, stop func())
}

// Acks records what the server holds. Ack and ClearAck must not wait for a disk;
// Flush makes them durable and costs nothing if there is nothing new. Acks of
// pods without entry are ignored.
type Acks interface {
	// Ack: the object liveUID holds version v of the pod uid.
	Ack(uid, liveUID types.UID, v journal.Version)
	// ClearAck: the object differs from what was acked.
	ClearAck(uid types.UID)
	Flush(ctx context.Context) error
}

// Dropper removes a pod's status for good: a removed event with the reason.
type Dropper interface {
	Drop(ctx context.Context, uid types.UID, reason journal.Reason) error
}

// PodSource knows the pods that the node runs. It is called often and must
// answer from memory.
type PodSource interface {
	// PodByUID returns the pod by its own UID, never a mirror.
	PodByUID(uid types.UID) (*v1.Pod, bool)
	// MirrorOf has three answers (SEMANTICS 3): not static; static with the UID
	// of its mirror; static and "": without mirror yet.
	MirrorOf(uid types.UID) (mirror types.UID, static bool)
	// ResolveUID turns a mirror's UID into the static pod's, any other UID into
	// itself (SEMANTICS 2).
	ResolveUID(uid types.UID) types.UID
}

// Runtime says whether containers of a pod may still run. While they may, a
// terminal phase is held back (SEMANTICS 79). A change to "no" is noticed within
// a second; Syncer.Wake makes it immediate.
type Runtime interface {
	PodCouldHaveRunningContainers(pod *v1.Pod) bool
}

// Observer is told what happens, for metrics. Its methods must return quickly.
type Observer interface {
	// Request was answered. Verb is PATCH, GET or DELETE; outcome is "ok" or the
	// reason that Failing shows.
	Request(verb, outcome string, took time.Duration)
	// Delivered: a version of the pod was acked that long after the oldest version
	// that was not (SEMANTICS 95).
	Delivered(pod types.UID, latency time.Duration)
	// Circuit: the API server is taken for dead (open) or alive again.
	Circuit(open bool)
}

// ordinaryPods is the PodSource of nodes without static pods.
type ordinaryPods struct{}

func (ordinaryPods) PodByUID(types.UID) (*v1.Pod, bool)   { return nil, false }
func (ordinaryPods) MirrorOf(types.UID) (types.UID, bool) { return "", false }
func (ordinaryPods) ResolveUID(uid types.UID) types.UID   { return uid }

type blindObserver struct{}

func (blindObserver) Request(string, string, time.Duration) {}
func (blindObserver) Delivered(types.UID, time.Duration)    {}
func (blindObserver) Circuit(bool)                          {}
