package main

import (
	"fmt"
	"io"
)

// Target is what notebox is meant to reach, as a ratio to docker run in the same
// benchmark.
type Target struct {
	What string  `json:"what"`
	Want float64 `json:"want"`
	Got  float64 `json:"got"`
	Met  bool    `json:"met"`
}

// judge leaves out what was not measured.
func (r *Report) judge() []Target {
	out := []Target{}
	atLeast := func(what string, want, got float64) {
		if got > 0 {
			out = append(out, Target{what, want, got, got >= want})
		}
	}
	for _, t := range []struct {
		name      string
		p50, p99  float64 // how many times faster when warm
		emptyP50  float64 // and with an empty pool
		cpuAtMost float64 // share of docker run's
		// stepOfWarm is what a step in a session may take of a warm run's time, at p50.
		stepOfWarm float64
	}{
		{name: "print", p50: 80, p99: 20, emptyP50: 1, cpuAtMost: 1, stepOfWarm: 0.8},
		{name: "plot", p50: 15, cpuAtMost: 0.75},
	} {
		c := r.caseNamed(t.name)
		if c == nil {
			continue
		}
		atLeast(c.Title+": warm, times faster at p50", t.p50, c.FasterP50[wayWarm])
		if t.p99 > 0 {
			atLeast(c.Title+": warm, p99 against docker run's p50, times faster", t.p99, c.FasterP99OfP50[wayWarm])
		}
		if t.emptyP50 > 0 {
			atLeast(c.Title+": empty pool, times faster at p50", t.emptyP50, c.FasterP50[wayEmpty])
		}
		if t.stepOfWarm > 0 && c.StepOfWarm > 0 {
			what := c.Title + ": a session's step, p50 of a warm single-use run's, at most"
			out = append(out, Target{what, t.stepOfWarm, c.StepOfWarm, c.StepOfWarm <= t.stepOfWarm})
		}
		for i, share := range c.CPUShare {
			l := c.Sustained[wayWarm][i]
			what := fmt.Sprintf("%s: CPU-seconds a run of docker run's, %d callers, none refused, at most", c.Title, l.Callers)
			out = append(out, Target{what, t.cpuAtMost, share, share > 0 && share <= t.cpuAtMost && l.Refused == 0})
		}
	}
	return out
}

func (r *Report) writeTargets(w io.Writer) {
	if len(r.Targets) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, t := range r.Targets {
		verdict := "met"
		if !t.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%-6s  %s: %g, wanted %g\n", verdict, t.What, t.Got, t.Want)
	}
}
