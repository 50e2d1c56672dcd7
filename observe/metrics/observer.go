package metrics

import (
	"strconv"
	"time"

	"notebox/runner"
	"notebox/server"
)

// The values of the label result.
const (
	resultOK     = "ok"
	resultFailed = "failed"
)

// reasons are the values of the label reason: the server's and the runner's.
func reasons() []string {
	out := []string{string(runner.CodeFull), string(runner.CodeShare), string(runner.CodeUnavailable)}
	for _, r := range server.Refusals() {
		out = append(out, string(r))
	}
	return out
}

// Answered implements server.Observer.
func (m *Metrics) Answered(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, class(status)).Inc()
	m.requestTimes.WithLabelValues(route, method).Observe(took.Seconds())
}

// Refused implements server.Observer.
func (m *Metrics) Refused(r server.Refusal) { m.refusals.WithLabelValues(string(r)).Inc() }

// Stored implements server.Observer.
func (m *Metrics) Stored(took time.Duration) {
	m.phases.WithLabelValues(phaseStore).Observe(took.Seconds())
}

// Probed implements server.Observer.
func (m *Metrics) Probed(ok bool) {
	result := resultFailed
	if ok {
		result = resultOK
	}
	m.probes.WithLabelValues(result).Inc()
}

// class is that of a status: 2xx.
func class(status int) string {
	if status < 100 || status > 599 {
		return "other"
	}
	return strconv.Itoa(status/100) + "xx"
}
