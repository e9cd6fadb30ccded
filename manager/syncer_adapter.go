// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
	"github.com/statusstore/statusstore/syncer"
)

// syncerView is the manager as the syncer sees it.
type syncerView struct{ m *Manager }

var (
	_ syncer.Entries   = (*projection.Projection)(nil)
	_ syncer.Changes   = syncerView{}
	_ syncer.Acks      = syncerView{}
	_ syncer.Dropper   = syncerView{}
	_ syncer.PodSource = PodLookup(nil)
	_ syncer.Runtime   = Runtime(nil)
)

func (m *Manager) syncerOptions() syncer.Options {
	view := syncerView{m}
	return syncer.Options{
		Client: m.opts.Client, Live: m.live,
		Entries: m.projection, Changes: view, Acks: view, Drops: view,
		Pods: m.pods, Runtime: m.opts.Runtime, Observer: m.opts.Sync.Observer, Logger: m.log,
		Workers: m.opts.Sync.Workers, PassInterval: m.opts.Sync.PassInterval, RequestTimeout: m.opts.Sync.RequestTimeout,
		RetryBase: m.opts.Sync.RetryBase, RetryMax: m.opts.Sync.RetryMax,
	}
}

func (v syncerView) Watch() (wake <-chan struct{}, take func() []types.UID, stop func()) {
	w := v.m.projection.Watch()
	return w.C, w.Take, w.Stop
}

func (v syncerView) Ack(uid, liveUID types.UID, version journal.Version) {
	v.m.ack(journal.Ack{UID: uid, LiveUID: liveUID, Version: version, Time: time.Now()})
}

func (v syncerView) ClearAck(uid types.UID) {
	v.m.projection.ClearAck(uid)
	v.m.journal.ForgetAck(uid)
}

func (v syncerView) Flush(ctx context.Context) error { return v.m.journal.Flush(ctx) }

func (v syncerView) Drop(ctx context.Context, uid types.UID, reason journal.Reason) error {
	return v.m.Remove(ctx, uid, reason)
}
