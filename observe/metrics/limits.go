package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"notebox/access"
)

// limitGauges are those of limits that hold over several services: zero if each holds its own.
type limitGauges struct{ sharing, services, calls *prometheus.Desc }

func newLimitGauges(desc func(name, help string, labels ...string) *prometheus.Desc) limitGauges {
	return limitGauges{
		sharing:  desc("limits_store", "1 for the state of the store of limits.", "state"),
		services: desc("limits_services", "Services that were there when the store of limits answered last."),
		calls:    desc("limits_store_calls_total", "Calls of the store of limits, by result.", "result"),
	}
}

func (g *gauges) collectLimits(out chan<- prometheus.Metric, put func(*prometheus.Desc, int, ...string)) {
	var now access.Sharing
	if g.sources.Limits != nil {
		now, _ = g.sources.Limits()
	}
	one := map[bool]int{true: 1}
	for _, state := range []string{access.SharingOK, access.SharingDown} {
		put(g.sharing, one[state == now.Store], state)
	}
	put(g.services, now.Services)
	for result, n := range map[string]int64{resultOK: now.Calls - now.Failed, resultFailed: now.Failed} {
		out <- prometheus.MustNewConstMetric(g.calls, prometheus.CounterValue, float64(n), result)
	}
}
