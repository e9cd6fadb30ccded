// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/syncer"
)

// Options configure a manager. Only Path is required.
type Options struct {
	// Path of the journal file. It is created if it is missing; its directory
	// must exist.
	Path string
	// Node is the name of this node. It is recorded in the journal, which then
	// opens for no other node. Required with Client.
	Node string
	// Software is recorded in opened events, such as "statusstore v1.2.3".
	Software string

	// Client reaches the API server. Nil: nothing syncs, all else works.
	Client kubernetes.Interface
	// Live shows this node's pods as the API server has them. Nil: made from
	// Client and Node. Run runs it in both cases.
	Live *syncer.LivePods

	// Pods is the embedding program's pod source. Nil: the manager remembers the
	// pods it is given, in the journal too, and looks at the live ones.
	Pods PodLookup
	// Runtime is asked before a terminal phase is sent. Nil: what the caller
	// stores is taken at its word.
	Runtime Runtime
	// RememberPods keeps pod objects (without status) in the journal although
	// Pods is given, so that History and tools can show them.
	RememberPods bool

	// Retention bounds the history in the journal.
	Retention journal.Retention
	// LockTimeout bounds the wait for a journal that is in use. Default 1 s.
	LockTimeout time.Duration
	// Sync tunes the syncer.
	Sync SyncOptions

	// Hooks are told what happens.
	Hooks Hooks
	// Logger receives what an operator should know. Nil: nothing is logged.
	Logger *slog.Logger
}

// SyncOptions tune how statuses are sent. The zero value is the recommended one.
type SyncOptions struct {
	Workers        int           // pods sent at the same time; default 10
	PassInterval   time.Duration // between full passes; default 10 s
	RequestTimeout time.Duration // per request; default 10 s
	// RetryBase and RetryMax bound the wait of a pod whose request was refused.
	// Defaults 1 s and 5 min.
	RetryBase, RetryMax time.Duration
	// Observer is told of requests, for metrics.
	Observer syncer.Observer
}

func (o Options) withDefaults() (Options, error) {
	if o.Path == "" {
		return o, &InvalidError{Field: "Path", Detail: "the journal's file name is required"}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Client != nil && o.Node == "" {
		return o, &InvalidError{Field: "Node", Detail: "required with a client"}
	}
	if o.Live != nil && o.Client == nil {
		return o, errors.Join(&InvalidError{Field: "Live", Detail: "needs Client"}, ErrNoClient)
	}
	return o, nil
}
