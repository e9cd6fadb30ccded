// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/statusstore/statusstore/internal/logkey"
)

// Options set up a Syncer. Client, Live, Entries, Acks and Drops are required;
// the zero value of the rest is the recommended setup.
type Options struct {
	Client kubernetes.Interface
	// Live are the node's pods. Whoever calls Run here also runs them.
	Live *LivePods

	Entries Entries
	Acks    Acks
	Drops   Dropper
	// Changes wakes the syncer. Nil: only Wake, the watch and passes do.
	Changes Changes
	// Pods translates UIDs. Nil: there are no static pods.
	Pods PodSource
	// Runtime says whether containers may still run. Nil: a terminal phase is
	// taken at its word.
	Runtime Runtime

	Logger   *slog.Logger // nil discards
	Observer Observer     // nil: nobody looks

	// Workers is how many requests may be under way at once. Default 10, at most
	// 1000. A hanging request takes one of them.
	Workers int
	// PassInterval is the time between passes over all pods. Default 10 s.
	PassInterval time.Duration
	// RequestTimeout bounds each request. Default 10 s.
	RequestTimeout time.Duration
	// RetryBase and RetryMax bound the wait after a refusal or a 404. Defaults 1 s
	// and 5 min.
	RetryBase, RetryMax time.Duration
	// RetryAfterMax caps what a server may ask for with Retry-After. Default 5 min.
	RetryAfterMax time.Duration
	// HeldInterval is how often Runtime is asked about a terminal phase that is
	// held back. Default 1 s.
	HeldInterval time.Duration
}

const (
	maxWorkers = 1000
	// serverRetryMax bounds the wait of a pod whose request failed for the
	// server's fault, as long as nothing else gets through either.
	serverRetryMax = 5 * time.Second
	// firstLook is how long a pod may be missing among the live pods before it
	// is looked up: the watch is usually less behind.
	firstLook = 2 * time.Second
	// flushDelay gathers acks; G2 wants them durable within a second.
	flushDelay = 500 * time.Millisecond
	// flushTimeout bounds the last flush, after the context has ended.
	flushTimeout = 5 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	missing := func(name string) error { return fmt.Errorf("%w: %s is missing", ErrOptions, name) }
	switch {
	case o.Client == nil:
		return o, missing("Client")
	case o.Live == nil:
		return o, missing("Live")
	case o.Entries == nil:
		return o, missing("Entries")
	case o.Acks == nil:
		return o, missing("Acks")
	case o.Drops == nil:
		return o, missing("Drops")
	case o.Workers < 0 || o.Workers > maxWorkers:
		return o, fmt.Errorf("%w: Workers is %d, want 1 to %d", ErrOptions, o.Workers, maxWorkers)
	}
	for _, d := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
	}{
		{"PassInterval", &o.PassInterval, 10 * time.Second},
		{"RequestTimeout", &o.RequestTimeout, 10 * time.Second},
		{"RetryBase", &o.RetryBase, time.Second},
		{"RetryMax", &o.RetryMax, 5 * time.Minute},
		{"RetryAfterMax", &o.RetryAfterMax, 5 * time.Minute},
		{"HeldInterval", &o.HeldInterval, time.Second},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("%w: %s is negative", ErrOptions, d.name)
		}
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.Workers == 0 {
		o.Workers = 10
	}
	if o.Pods == nil {
		o.Pods = ordinaryPods{}
	}
	if o.Observer == nil {
		o.Observer = blindObserver{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With(logkey.Component, "syncer")
	return o, nil
}
