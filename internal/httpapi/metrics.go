// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"
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
	commits    prometheus.Histogram
	writes     *prometheus.HistogramVec
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
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "statusstore_journal_commit_events", Help: "Events that one commit made durable.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12)}),
		writes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusstore_write_duration_seconds", Help: "Time until a change was durable, found to be none, or refused.", Buckets: seconds}, []string{"result"}),
		resizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statusstore_deferred_resize_duration_seconds", Help: "How long deferred resizes waited.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10)}, []string{"outcome"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "statusstore_record_retries_total", Help: "Observed changes that could not be journalled at once."}),
	}
	x.registry.MustRegister(
		x.requests, x.requestDuration, x.watches, x.syncRequests, x.syncDuration, x.syncLatency, x.circuitOpen,
		x.terminated, x.rejected, x.commits, x.writes, x.resizes, x.retries,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return x
}

func (x *Metrics) attach(a *api) {
	x.attached.Do(func() { x.registry.MustRegister(figures{a}) })
}

// Hooks returns the manager's hooks that feed the metrics.
func (x *Metrics) Hooks() manager.Hooks {
	return manager.Hooks{
		ContainerTerminated: func(_ types.UID, t podstatus.Termination) {
			x.terminated.WithLabelValues(t.Kind, exitCodeLabel(t.ExitCode), reasonLabel(t.Reason)).Inc()
		},
		Committed: func(events int) { x.commits.Observe(float64(events)) },
		Rejected:  func(*podstatus.TransitionError) { x.rejected.Inc() },
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

// The results of a write.
const (
	writeApplied   = "applied"
	writeUnchanged = "unchanged"
	writeRefused   = "refused" // for the caller's fault
	writeFailed    = "failed"  // for the disk's
)

// Written is called when a write has ended, with what it changed and its error.
func (x *Metrics) Written(changed bool, err error, took time.Duration) {
	result := writeUnchanged
	switch {
	case err != nil && statusOf(err).Code >= http.StatusInternalServerError:
		result = writeFailed
	case err != nil:
		result = writeRefused
	case changed:
		result = writeApplied
	}
	x.writes.WithLabelValues(result).Observe(took.Seconds())
}

// knownReasons are why containers end, as runtimes and kubelets say it. Callers may
// say anything, and each word would be a series for ever.
var knownReasons = []string{
	"", "Completed", "Error", "OOMKilled", "ContainerCannotRun", "ContainerStatusUnknown", "DeadlineExceeded",
	"Evicted", "RestartAllContainers", "StartError", "Unknown",
}

const otherLabel = "other"

func reasonLabel(reason string) string {
	if slices.Contains(knownReasons, reason) {
		return reason
	}
	return otherLabel
}

func exitCodeLabel(code int32) string {
	if code < 0 || code > 255 {
		return otherLabel
	}
	return strconv.Itoa(int(code))
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
