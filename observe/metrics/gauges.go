package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"notebox/dependencies"
	"notebox/runner"
	"notebox/runner/session"
)

// gauges are what is asked for when somebody reads: the pool once for all of its
// numbers, so that they fit each other, and so the sessions.
type gauges struct {
	sources                                   Sources
	running, waiting, target, depth, existing *prometheus.Desc
	sessions, opened, ended                   *prometheus.Desc
	layers, layerBytes, installing            *prometheus.Desc
	cellGauges
	limitGauges
}

func newGauges(s Sources) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &gauges{
		sources:    s,
		running:    desc("runs_running", "Runs that have a place now."),
		waiting:    desc("runs_waiting", "Runs that wait for a place now."),
		target:     desc("pool_target", "Sandboxes that are to be warm."),
		depth:      desc("pool_sandboxes", "Sandboxes now, by state.", "state"),
		existing:   desc("sandboxes", "Sandboxes that exist now, in any state."),
		sessions:   desc("sessions", "Sessions that are open now, by state.", "state"),
		opened:     desc("sessions_opened_total", "Sessions that were opened, and those gone on with after a restart."),
		layers:     desc("layers", "Sets of packages that are kept."),
		layerBytes: desc("layer_bytes", "Bytes of all sets of packages that are kept."),
		installing: desc("installs_running", "Sets of packages that are being installed."),
		ended:      desc("sessions_ended_total", "Sessions that ended, by reason.", "reason"),
		cellGauges: newCellGauges(desc),

		limitGauges: newLimitGauges(desc),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, out) }

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	running, waiting := g.sources.Runs()
	put(g.running, running)
	put(g.waiting, waiting)
	pool := g.sources.Pool()
	put(g.target, pool.Size)
	put(g.existing, pool.Sandboxes)
	put(g.depth, pool.Warm, "warm")
	put(g.depth, pool.Starting, "starting")
	put(g.depth, pool.Running, "running")
	put(g.depth, pool.Sessions, "session")
	put(g.depth, pool.Removing, "removing")
	g.collectCells(out, put, pool)
	g.collectSessions(out, put)
	g.collectPackages(out, put)
	g.collectLimits(out, put)
}

func (g *gauges) collectPackages(out chan<- prometheus.Metric, put func(*prometheus.Desc, int, ...string)) {
	var now dependencies.Stats
	if g.sources.Packages != nil {
		now = g.sources.Packages()
	}
	put(g.layers, now.Layers)
	put(g.installing, now.Installing)
	out <- prometheus.MustNewConstMetric(g.layerBytes, prometheus.GaugeValue, float64(now.Bytes))
}

func (g *gauges) collectSessions(out chan<- prometheus.Metric, put func(*prometheus.Desc, int, ...string)) {
	var now session.Stats
	if g.sources.Sessions != nil {
		now = g.sources.Sessions()
	}
	put(g.sessions, now.Open-now.Idle, "running")
	put(g.sessions, now.Idle, "idle")
	out <- prometheus.MustNewConstMetric(g.opened, prometheus.CounterValue, float64(now.Opened))
	for _, reason := range ends() {
		out <- prometheus.MustNewConstMetric(g.ended, prometheus.CounterValue, float64(now.Ended[reason]), string(reason))
	}
}

// ends are the values of the label reason of sessions_ended_total.
func ends() []runner.GoneReason {
	return []runner.GoneReason{runner.GoneClosed, runner.GoneExpired, runner.GoneIdle, runner.GoneEvicted, runner.GoneLost}
}
