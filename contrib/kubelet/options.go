// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/manager"
)

// Options are what status.NewManager takes, and where to keep the statuses.
type Options struct {
	// Store sets up the manager below the adapter: Path is required, Client and
	// Node are what a kubelet has. Pods and Runtime must be left out, they are
	// made from the fields below. Hooks and Sync.Observer are called after the
	// adapter's own. A nil Logger becomes one that writes to the Logger below.
	Store manager.Options

	// Pods is the kubelet's pod manager. Required.
	Pods status.PodManager
	// DeletionSafety tells whether containers of a pod may still run. Required.
	DeletionSafety status.PodDeletionSafetyProvider
	// StartupLatency measures how fast pods start. Nil: nobody does.
	StartupLatency status.PodStartupLatencyStateHelper

	// Logger serves calls that are given no logger of their own. The zero value
	// is klog.Background().
	Logger klog.Logger
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Store.Pods != nil:
		return o, &manager.InvalidError{Field: "Store.Pods", Detail: "is made from Pods"}
	case o.Store.Runtime != nil:
		return o, &manager.InvalidError{Field: "Store.Runtime", Detail: "is made from DeletionSafety"}
	case o.Pods == nil:
		return o, &manager.InvalidError{Field: "Pods", Detail: "is required"}
	case o.DeletionSafety == nil:
		return o, &manager.InvalidError{Field: "DeletionSafety", Detail: "is required"}
	}
	if o.Logger.IsZero() {
		o.Logger = klog.Background()
	}
	if o.Store.Logger == nil {
		o.Store.Logger = slog.New(logr.ToSlogHandler(o.Logger))
	}
	return o, nil
}
