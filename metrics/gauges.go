package metrics

import "github.com/prometheus/client_golang/prometheus"

// gauges are what is asked for when somebody reads: the pool once for all of its
// numbers, so that they fit each other.
type gauges struct {
	sources                                   Sources
	running, waiting, target, depth, existing *prometheus.Desc
}

func newGauges(s Sources) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &gauges{
		sources:  s,
		running:  desc("runs_running", "Runs that have a place now."),
		waiting:  desc("runs_waiting", "Runs that wait for a place now."),
		target:   desc("pool_target", "Sandboxes that are to be warm."),
		depth:    desc("pool_sandboxes", "Sandboxes now, by state.", "state"),
		existing: desc("sandboxes", "Sandboxes that exist now, in any state."),
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
	put(g.depth, pool.Removing, "removing")
}
