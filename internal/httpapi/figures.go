// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// figures are read from the manager when they are asked for. They are those of
// GET /statusstore/v1/status.
type figures struct{ a *api }

type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string) figure {
	return figure{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue}
}

var (
	figureBuild      = gauge("statusstore_build_info", "1; the labels say which build runs, and in which mode.", "version", "goversion", "mode")
	figurePods       = gauge("statusstore_pods", "Pods with a stored status.")
	figurePending    = gauge("statusstore_pods_pending", "Pods whose newest version is not acked.")
	figureBehind     = gauge("statusstore_acked_versions_behind", "Versions that are not acked, over all pods.")
	figurePendingAge = gauge("statusstore_pending_age_seconds", "Age of the oldest version that is not acked.")
	figureFailing    = gauge("statusstore_pods_failing", "Pods whose last request was refused, by reason.", "reason")
	figureSyncing    = gauge("statusstore_syncing", "1 if there is an API server to talk to.")
	figureSynced     = gauge("statusstore_live_synced", "1 when the first LIST of the API server's pods is complete.")
	figureServer     = gauge("statusstore_server_failing", "1 while LIST or WATCH fail, or the API server is taken for unreachable.")
	figureQueue      = gauge("statusstore_sync_queue_depth", "Pods that wait for a request to the API server.")
	figureInFlight   = gauge("statusstore_sync_in_flight", "Pods that are being compared or sent.")
	figureParked     = gauge("statusstore_sync_parked", "Pods that wait for the API server to come back.")
	figureHead       = counter("statusstore_journal_events_total", "Events appended since the journal was created: its head sequence.")
	figureEpoch      = gauge("statusstore_journal_epoch", "How often the journal was opened.")
	figureUnclean    = gauge("statusstore_unclean_start", "1 if the run before this one did not close the journal.")
	figureEvents     = gauge("statusstore_journal_events", "Events that are kept.")
	figureBytes      = gauge("statusstore_journal_bytes", "Size of the journal file.")
	figureFreeBytes  = gauge("statusstore_journal_free_bytes", "Part of the journal file that is free.")
	figureDegraded   = gauge("statusstore_journal_degraded", "1 while writes fail.")
	figureResizes    = gauge("statusstore_resizes", "Pods with a resize, by state.", "state", "reason", "priority")

	allFigures = []figure{
		figureBuild, figurePods, figurePending, figureBehind, figurePendingAge, figureFailing, figureSyncing, figureSynced, figureServer,
		figureQueue, figureInFlight, figureParked,
		figureHead, figureEpoch, figureUnclean, figureEvents, figureBytes, figureFreeBytes, figureDegraded, figureResizes,
	}
)

// Describe implements prometheus.Collector.
func (figures) Describe(out chan<- *prometheus.Desc) {
	for _, f := range allFigures {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c figures) Collect(out chan<- prometheus.Metric) {
	send := func(f figure, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
	}
	truth := map[bool]float64{true: 1}
	s := c.a.status()
	send(figureBuild, 1, s.Software, runtime.Version(), s.Mode)
	send(figurePods, float64(s.Pods))
	send(figurePending, float64(s.Pending))
	send(figureBehind, float64(s.AckedVersionsBehind))
	age := time.Duration(0)
	if s.OldestPending != nil {
		age = time.Since(*s.OldestPending)
	}
	send(figurePendingAge, max(0, age.Seconds()))
	// Always there, so that a sum is 0 and not nothing.
	failing := map[string]int{"": 0}
	for _, p := range s.FailingPods {
		failing[p.Reason]++
	}
	for reason, n := range failing {
		send(figureFailing, float64(n), reason)
	}
	send(figureSyncing, truth[s.Syncing])
	send(figureSynced, truth[s.LiveSynced])
	send(figureServer, truth[s.ServerFailing])
	syncs := c.a.m.SyncStats()
	send(figureQueue, float64(syncs.Queued))
	send(figureInFlight, float64(syncs.InFlight))
	send(figureParked, float64(syncs.Parked))
	send(figureHead, float64(s.HeadSequence))
	send(figureEpoch, float64(s.Epoch))
	send(figureUnclean, truth[s.UncleanStart])
	send(figureEvents, float64(s.Events))
	send(figureBytes, float64(s.JournalBytes))
	send(figureFreeBytes, float64(s.FreeBytes))
	send(figureDegraded, truth[s.Degraded])
	for _, r := range c.a.m.ResizeCounts() {
		send(figureResizes, float64(r.Pods), r.State, r.Reason, r.Priority)
	}
}
