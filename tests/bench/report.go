package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Report is the file of results. Times are in the unit that a field's name says.
type Report struct {
	Date      time.Time        `json:"date"`
	Quick     bool             `json:"quick,omitempty"` // no measurement, see -quick
	Machine   Machine          `json:"machine"`
	Settings  Settings         `json:"settings"`
	Method    []string         `json:"method"`
	Idle      Idle             `json:"idle"`
	Cases     []CaseReport     `json:"cases"`
	Memory    []Memory         `json:"memory"`
	Cells     *CellsReport     `json:"cells,omitempty"`
	Languages []LanguageReport `json:"languages,omitempty"`
	Targets   []Target         `json:"targets"`
}

// Settings of the benchmark.
type Settings struct {
	PoolSize    int      `json:"pool_size"`
	ServeFlags  []string `json:"serve_flags"`
	WarmRuns    int      `json:"warm_runs"`
	OtherRuns   int      `json:"other_runs"`
	LoadSeconds float64  `json:"load_seconds"`
}

// Idle is the machine's CPU time while nothing is asked of it, in cores.
type Idle struct {
	Bare         float64 `json:"bare_cores"`          // before anything was started
	WithServices float64 `json:"with_services_cores"` // with a full pool
	AtTheEnd     float64 `json:"at_the_end_cores"`    // the same, after all loads
}

// CaseReport is what one piece of code gave. The keys of the maps are the ways:
// a docker run, b notebox warm, c notebox with an empty pool, d a step in a session, e notebox in cells.
type CaseReport struct {
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Code    string          `json:"code"`
	Latency map[way]Latency `json:"latency"`
	// FasterP50 is a's p50 divided by the way's p50, FasterP99 a's p99 by its p99,
	// FasterP99OfP50 a's p50 by its p99: what a caller can count on, against the
	// ordinary case of the other.
	FasterP50      map[way]float64 `json:"faster_p50"`
	FasterP99      map[way]float64 `json:"faster_p99"`
	FasterP99OfP50 map[way]float64 `json:"faster_p99_of_p50"`
	// StepOfWarm is d's p50 divided by b's.
	StepOfWarm float64        `json:"step_of_warm_p50"`
	Sustained  map[way][]Load `json:"sustained"`
	// CPUShare is b's CPU time a run divided by a's, at a's cheapest number of
	// callers; one for each of b's loads.
	CPUShare []float64 `json:"cpu_share"`
}

// Latency of runs one after another.
type Latency struct {
	Runs    int       `json:"runs"`
	P50     float64   `json:"p50_ms"`
	P95     float64   `json:"p95_ms"`
	P99     float64   `json:"p99_ms"`
	Samples []float64 `json:"samples_ms"` // in the order in which they were measured
}

// Load is one number of callers for a time.
type Load struct {
	Callers          int     `json:"callers"`
	Seconds          float64 `json:"seconds"`
	SecondsUntilIdle float64 `json:"seconds_until_idle"`
	Runs             int     `json:"runs"`
	Refused          int     `json:"refused"`         // by 429 and 503
	PerSecond        float64 `json:"runs_per_second"` // ended after a sixth of the time and within it
	P50              float64 `json:"p50_ms"`
	P95              float64 `json:"p95_ms"`
	P99              float64 `json:"p99_ms"`
	CPUSeconds       float64 `json:"cpu_seconds"` // of the whole machine, until idle
	CPUPerRun        float64 `json:"cpu_seconds_per_run"`
	StolenSeconds    float64 `json:"stolen_seconds"` // by the hypervisor
}

func newReport(o options, s *seed) *Report {
	r := &Report{
		Date: time.Now().UTC().Truncate(time.Second), Quick: o.quick,
		Settings: Settings{o.poolSize, o.serveFlags, o.warmRuns, o.otherRuns, o.load.Seconds()},
		Method: []string{
			"a: docker " + strings.Join(s.arguments("NAME", "FOLDER"), " "),
			fmt.Sprintf("b: POST %s to notebox serve --pool-size %d, a sandbox waiting, pool full and idle", executePath, o.poolSize),
			fmt.Sprintf("c: POST %s to notebox serve --pool-size 0", executePath),
			"d: as b, in a session that is open and has run this code before",
			"e: as b, with --isolation cell",
			"a is timed until docker ends: the 50 MB file is in the mounted folder. b, c, d and e are timed until the client has the whole reply, and the file by its link.",
			"Percentiles are exact, by nearest rank, from all samples; of fewer than 100 the 99th is the largest.",
			"CPU time is the whole machine's (/proc/stat: user, nice, system, irq, softirq), Docker and the client included, from an idle machine until it is idle again, what it spends idle included.",
			"Sustained: vegeta, a fixed number of callers, each without a pause.",
		},
		Targets: []Target{},
		Memory:  []Memory{},
	}
	for _, c := range o.cases {
		r.Cases = append(r.Cases, CaseReport{
			Name: c.name, Title: c.title, Code: c.code,
			Latency: map[way]Latency{}, Sustained: map[way][]Load{},
			FasterP50: map[way]float64{}, FasterP99: map[way]float64{}, FasterP99OfP50: map[way]float64{},
		})
	}
	return r
}

func newLatency(samples []time.Duration) Latency {
	l := Latency{
		Runs: len(samples),
		P50:  milliseconds(percentile(samples, 50)),
		P95:  milliseconds(percentile(samples, 95)),
		P99:  milliseconds(percentile(samples, 99)),
	}
	for _, s := range samples {
		l.Samples = append(l.Samples, milliseconds(s))
	}
	return l
}

// caseNamed returns nil for one that is not there.
func (r *Report) caseNamed(name string) *CaseReport {
	for i := range r.Cases {
		if r.Cases[i].Name == name {
			return &r.Cases[i]
		}
	}
	return nil
}

// compare fills in the ratios and the targets.
func (r *Report) compare() {
	for i := range r.Cases {
		r.Cases[i].compare()
	}
	r.Targets = slices.Concat(r.judge(), r.cellTargets(), r.languageTargets())
}

func (c *CaseReport) compare() {
	a := c.Latency[waySeed]
	c.StepOfWarm = ratio(c.Latency[wayStep].P50, c.Latency[wayWarm].P50)
	for _, w := range []way{wayWarm, wayEmpty, wayStep, wayCell} {
		l := c.Latency[w]
		c.FasterP50[w] = ratio(a.P50, l.P50)
		c.FasterP99[w] = ratio(a.P99, l.P99)
		c.FasterP99OfP50[w] = ratio(a.P50, l.P99)
	}
	cheapest := 0.0
	for _, l := range c.Sustained[waySeed] {
		if l.Runs > 0 && (cheapest == 0 || l.CPUPerRun < cheapest) {
			cheapest = l.CPUPerRun
		}
	}
	c.CPUShare = nil
	for _, l := range c.Sustained[wayWarm] {
		c.CPUShare = append(c.CPUShare, ratio(l.CPUPerRun, cheapest))
	}
}

// numberLists are lists of numbers that json.Indent has put on a line each.
var numberLists = regexp.MustCompile(`\[[\s\d.,]+\]`)

// writeFile writes the report to a file that is there whole or not at all.
func (r *Report) writeFile(name string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	raw = numberLists.ReplaceAllFunc(raw, func(list []byte) []byte {
		return []byte(strings.Join(strings.Fields(string(list)), " "))
	})
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", append(raw, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readReport(name string) (*Report, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &r, nil
}
