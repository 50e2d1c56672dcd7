package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"notebox/access"
	"notebox/dependencies"
	"notebox/runner"
	"notebox/runner/cells"
	"notebox/runner/pool"
	"notebox/runner/session"
	"notebox/server"
)

// namespace begins the names of all metrics that are notebox's own.
const namespace = "notebox"

// statusFailed is the status of a run that the service failed: it has no outcome.
const statusFailed = "failed"

// readTime bounds one reading: what is asked for is in memory.
const readTime = 10 * time.Second

// readAtOnce bounds how many read at the same time.
const readAtOnce = 4

// Sources are asked when somebody reads the metrics. None may wait; all must be set, but
// for Sessions, Packages, Cells and Limits if there are none.
type Sources struct {
	Pool     func() pool.Stats
	Runs     func() (running, waiting int)
	Sessions func() session.Stats
	Packages func() dependencies.Stats // nil if requests can have none
	Cells    func() cells.Stats        // nil if runs have none
	// Limits tells how limits hold over several services; nil if there are no keys.
	Limits func() (access.Sharing, bool)
	// Isolation is what runs have, which does not change.
	Isolation server.Isolation
	// Environments are the names that runs can have as their environment; another
	// counts as "other".
	Environments []string
}

// Metrics is the registry, and implements server.Observer.
type Metrics struct {
	registry     *prometheus.Registry
	environments map[string]bool

	runs     *prometheus.CounterVec
	phases   *prometheus.HistogramVec
	cpu      *prometheus.CounterVec
	refusals *prometheus.CounterVec
	reaped   prometheus.Counter
	probes   *prometheus.CounterVec
	installs *prometheus.CounterVec

	requests     *prometheus.CounterVec
	requestTimes *prometheus.HistogramVec

	storedBytes *prometheus.CounterVec
	storeErrors *prometheus.CounterVec
	storeTimes  *prometheus.HistogramVec
}

// New returns Metrics with a registry of their own.
func New(s Sources) *Metrics {
	m := &Metrics{
		registry:     prometheus.NewRegistry(),
		environments: map[string]bool{},
		runs:         counters("runs_total", "Runs that ended, by environment and status; failed is a failure of the service.", "environment", "status"),
		phases:       histograms("run_phase_seconds", "Time that runs spent in each phase.", "phase"),
		cpu:          counters("run_cpu_seconds_total", "CPU time of runs' code, by environment.", "environment"),
		refusals:     counters("refusals_total", "Requests and runs that were turned away, by reason.", "reason"),
		reaped:       prometheus.NewCounter(options("reaped_sandboxes_total", "Sandboxes that an earlier process had left behind, removed.")),
		probes:       counters("readiness_probes_total", "Runs of /readyz's own, by result.", "result"),
		installs:     counters("installs_total", "Sets of packages that runs asked for, by result: there before (cached), installed (ok), impossible (failed), or a failure of the service or the registry (error).", "result"),
		requests:     counters("http_requests_total", "HTTP requests that were answered, by route template, method and class of status.", "route", "method", "code"),
		requestTimes: histograms("http_request_seconds", "Time from a request's head to the end of its answer.", "route", "method"),
		storedBytes:  counters("stored_bytes_total", "Bytes that were stored, by kind of object.", "kind"),
		storeErrors:  counters("store_errors_total", "Calls of the store that failed, by operation.", "operation"),
		storeTimes:   histograms("store_seconds", "Time that calls of the store took, by operation.", "operation"),
	}
	for _, name := range s.Environments {
		m.environments[name] = true
	}
	m.registry.MustRegister(
		m.runs, m.phases, m.cpu, m.refusals, m.reaped, m.probes, m.installs, m.requests, m.requestTimes,
		m.storedBytes, m.storeErrors, m.storeTimes,
		newGauges(s),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	m.begin()
	return m
}

// begin has every series there is from the start on, at zero: a rate over one that
// appears with its first value misses that.
func (m *Metrics) begin() {
	for name := range m.environments {
		m.cpu.WithLabelValues(name)
		for _, status := range append(runner.Statuses(), statusFailed) {
			m.runs.WithLabelValues(name, string(status))
		}
	}
	for _, phase := range phases() {
		m.phases.WithLabelValues(phase)
	}
	for _, reason := range reasons() {
		m.refusals.WithLabelValues(reason)
	}
	for _, result := range []string{resultOK, resultFailed} {
		m.probes.WithLabelValues(result)
	}
	for _, result := range dependencies.Results() {
		m.installs.WithLabelValues(result)
	}
	for _, operation := range operations() {
		m.storeErrors.WithLabelValues(operation)
		m.storeTimes.WithLabelValues(operation)
	}
	for _, kind := range kinds() {
		m.storedBytes.WithLabelValues(kind)
	}
}

// Handler answers with all metrics, in the format that the request accepts.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: readAtOnce, Timeout: readTime})
}

// Registry is for tests, and for metrics of another package's own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Installed counts a set of packages that a run asked for, by one of dependencies.Results.
func (m *Metrics) Installed(result string) { m.installs.WithLabelValues(result).Inc() }

// Reaped counts sandboxes that an earlier process had left behind.
func (m *Metrics) Reaped(n int) { m.reaped.Add(float64(n)) }

func options(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(options(name, help), labels)
}

// buckets are for all times, in seconds: a warm run is 20 ms, a cold one 1 s, the
// longest that a request may ask for 300 s.
func buckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

// histograms have native buckets too, for a Prometheus that asks for them; bounded,
// as each is kept for every series.
func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help, Buckets: buckets(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

var _ server.Observer = (*Metrics)(nil)
