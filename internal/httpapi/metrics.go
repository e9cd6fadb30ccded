// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/syncer"
)

// Metrics are what GET /metrics shows, in a registry of their own. They observe
// the syncer, and Hooks observes the manager.
type Metrics struct {
	registry *prometheus.Registry
	attached sync.Once

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	watches         prometheus.Gauge

	syncRequests *prometheus.CounterVec
	syncDuration *prometheus.HistogramVec
	syncLatency  prometheus.Histogram
	circuitOpen  prometheus.Gauge

	terminated *prometheus.CounterVec
	rejected   prometheus.Counter
	resizes    *prometheus.HistogramVec
	retries    prometheus.Counter
}

var _ syncer.Observer = (*Metrics)(nil)

// NewMetrics returns metrics that show the figures of the first manager that New
// gets with them, too.
func NewMetrics() *Metrics {
	seconds := prometheus.ExponentialBuckets(0.001, 2, 15)
	x := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusstore_http_requests_total", Help: "Requests on the socket."}, []string{"path", "method", "code"}),
		requestDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusstore_http_request_duration_seconds", Help: "Time to answer requests that write.", Buckets: seconds}, []string{"path"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "statusstore_http_watches", Help: "Watches that are open."}),
		syncRequests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusstore_sync_requests_total", Help: "Requests to the API server about one pod, by outcome."}, []string{"verb", "outcome"}),
		syncDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusstore_sync_request_duration_seconds", Help: "Time until the API server answered.", Buckets: seconds}, []string{"verb"}),
		syncLatency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "statusstore_sync_latency_seconds", Help: "Time from a pod's oldest pending version to its ack.",
			Buckets: prometheus.ExponentialBuckets(0.005, 4, 12)}),
		circuitOpen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "statusstore_sync_circuit_open", Help: "1 while the API server is taken for unreachable."}),
		terminated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statusstore_containers_terminated_total", Help: "Containers that ended."}, []string{"kind", "exit_code", "reason"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "statusstore_rejected_updates_total", Help: "Updates refused as illegal transitions."}),
		resizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusstore_deferred_resize_duration_seconds", Help: "How long deferred resizes waited.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10)}, []string{"outcome"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "statusstore_record_retries_total", Help: "Observed changes that could not be journalled at once."}),
	}
	x.registry.MustRegister(
		x.requests, x.requestDuration, x.watches, x.syncRequests, x.syncDuration, x.syncLatency, x.circuitOpen,
		x.terminated, x.rejected, x.resizes, x.retries,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return x
}

func (x *Metrics) attach(m *manager.Manager) {
	x.attached.Do(func() { x.registry.MustRegister(figures{m}) })
}

// Hooks returns the manager's hooks that feed the metrics.
func (x *Metrics) Hooks() manager.Hooks {
	return manager.Hooks{
		ContainerTerminated: func(_ types.UID, t podstatus.Termination) {
			x.terminated.WithLabelValues(t.Kind, strconv.Itoa(int(t.ExitCode)), t.Reason).Inc()
		},
		Rejected: func(*podstatus.TransitionError) { x.rejected.Inc() },
		ResizeEnded: func(_ types.UID, outcome manager.ResizeOutcome, waited time.Duration) {
			x.resizes.WithLabelValues(string(outcome)).Observe(waited.Seconds())
		},
	}
}

// Request is called by the syncer.
func (x *Metrics) Request(verb, outcome string, took time.Duration) {
	x.syncRequests.WithLabelValues(verb, outcome).Inc()
	x.syncDuration.WithLabelValues(verb).Observe(took.Seconds())
}

// Delivered is called by the syncer.
func (x *Metrics) Delivered(_ types.UID, latency time.Duration) {
	x.syncLatency.Observe(latency.Seconds())
}

// Circuit is called by the syncer.
func (x *Metrics) Circuit(open bool) {
	x.circuitOpen.Set(0)
	if open {
		x.circuitOpen.Set(1)
	}
}

// RecordRetry is called when an observed change could not be journalled at once.
func (x *Metrics) RecordRetry() { x.retries.Inc() }

func (x *Metrics) observeRequest(pattern, method string, code int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPut, http.MethodPatch, http.MethodPost:
		// Reads are left out: a watch takes as long as its client likes.
		x.requestDuration.WithLabelValues(pattern).Observe(took.Seconds())
	default:
		method = "other"
	}
	x.requests.WithLabelValues(pattern, method, strconv.Itoa(code)).Inc()
}

// GET /metrics
func (a *api) getMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(a.Metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, r)
	return nil
}

// figures are read from the manager when they are asked for.
type figures struct{ m *manager.Manager }

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
	figurePods       = gauge("statusstore_pods", "Pods with a stored status.")
	figurePending    = gauge("statusstore_pods_pending", "Pods whose newest version is not acked.")
	figureBehind     = gauge("statusstore_acked_versions_behind", "Versions that are not acked, over all pods.")
	figurePendingAge = gauge("statusstore_pending_age_seconds", "Age of the oldest version that is not acked.")
	figureFailing    = gauge("statusstore_pods_failing", "Pods whose last request was refused.")
	figureSynced     = gauge("statusstore_live_synced", "1 when the first LIST of the API server's pods is complete.")
	figureHead       = counter("statusstore_journal_events_total", "Events appended since the journal was created: its head sequence.")
	figureEpoch      = counter("statusstore_journal_epoch", "How often the journal was opened.")
	figureEvents     = gauge("statusstore_journal_events", "Events that are kept.")
	figureBytes      = gauge("statusstore_journal_bytes", "Size of the journal file.")
	figureFreeBytes  = gauge("statusstore_journal_free_bytes", "Part of the journal file that is free.")
	figureDegraded   = gauge("statusstore_journal_degraded", "1 while writes fail.")
	figureResizes    = gauge("statusstore_resizes", "Pods with a resize, by state.", "state", "reason", "priority")

	allFigures = []figure{
		figurePods, figurePending, figureBehind, figurePendingAge, figureFailing, figureSynced, figureHead, figureEpoch,
		figureEvents, figureBytes, figureFreeBytes, figureDegraded, figureResizes,
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
	s := c.m.Status()
	send(figurePods, float64(s.Pods))
	send(figurePending, float64(s.Pending))
	send(figureBehind, float64(s.AckedVersionsBehind))
	age := time.Duration(0)
	if s.OldestPending != nil {
		age = time.Since(*s.OldestPending)
	}
	send(figurePendingAge, max(0, age.Seconds()))
	send(figureFailing, float64(s.Failing))
	send(figureSynced, truth[s.LiveSynced])
	send(figureHead, float64(s.HeadSequence))
	send(figureEpoch, float64(s.Epoch))
	send(figureBytes, float64(s.JournalBytes))
	send(figureDegraded, truth[s.Degraded])
	if stats, err := c.m.Journal().Stats(); err == nil {
		send(figureEvents, float64(stats.Events))
		send(figureFreeBytes, float64(stats.FreeBytes))
	}
	for _, r := range c.m.ResizeCounts() {
		send(figureResizes, float64(r.Pods), r.State, r.Reason, r.Priority)
	}
}
