package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Sizes of a full benchmark: by estimate 45 to 60 minutes on 2 cores.
const (
	defaultPoolSize = 4 // small enough for a machine of 2 cores and 4 GB
	defaultWarmRuns = 200
	// defaultOtherRuns of a and of c take a hundred times as long as one of b,
	// and differ less among each other.
	defaultOtherRuns    = 25
	defaultLanguageRuns = 31
	defaultLoad         = 30 * time.Second // several times as long as what the pool holds
	defaultIdle         = 10 * time.Second
)

// Sizes with -quick, which only shows that everything works.
const (
	quickWarmRuns  = 2
	quickOtherRuns = 1
	quickLoad      = 3 * time.Second
	quickIdle      = time.Second
)

type options struct {
	notebox      string // path of the program
	environments string // path of their folder
	poolSize     int
	serveFlags   []string
	out          string // path of the JSON file
	table        string // path of a JSON file to print and nothing else
	quick        bool
	warmUp       bool // one run of each that is not counted

	cases         []benchCase
	loadCases     []benchCase
	warmRuns      int
	otherRuns     int
	languageRuns  int // of a print in each language
	onlyLanguages bool
	load          time.Duration
	idle          time.Duration
	warmCallers   []int // of b
	seedCallers   []int // of a
}

func parseOptions(args []string) (options, error) {
	o := options{warmCallers: []int{1, 4, 16}, seedCallers: []int{1, 2}}
	serveFlags, names, loadNames := "", caseNames(), caseNames()
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.notebox, "notebox", "bin/notebox", "the program to measure")
	f.StringVar(&o.environments, "environments", "environments", "folder of the environments, for the prints in each language")
	f.IntVar(&o.poolSize, "pool-size", defaultPoolSize, "waiting sandboxes of the warm service (its --pool-size)")
	f.StringVar(&serveFlags, "serve-flags", "", "more flags of notebox serve, for both services, with spaces between")
	f.StringVar(&o.out, "out", filepath.Join("tests", "bench", "results", time.Now().Format(time.DateOnly)+".json"), "file for the results")
	f.StringVar(&o.table, "table", "", "print the tables of this results file, and measure nothing")
	f.BoolVar(&o.quick, "quick", false, "few runs, to see that it works; flags that are given still hold")
	f.Func("cases", "which pieces of code (default "+strings.Join(names, ",")+")", words(&names))
	f.Func("load-cases", "which of them are loaded too (default all; with -quick the first)", words(&loadNames))
	f.IntVar(&o.warmRuns, "warm-runs", defaultWarmRuns, "runs of each case with a sandbox waiting")
	f.IntVar(&o.otherRuns, "other-runs", defaultOtherRuns, "runs of each case by docker run, and as many with no sandbox waiting")
	f.IntVar(&o.languageRuns, "language-runs", defaultLanguageRuns, "runs of a print in each language; 0 leaves them out")
	f.BoolVar(&o.onlyLanguages, "only-languages", false, "measure prints in each language, and nothing else")
	f.DurationVar(&o.load, "load", defaultLoad, "how long each load goes on")
	f.DurationVar(&o.idle, "idle", defaultIdle, "how long the idle machine is looked at")
	f.Func("callers", "numbers of callers of notebox (default 1,4,16)", numbers(&o.warmCallers))
	f.Func("seed-callers", "numbers of docker run at one time (default 1,2)", numbers(&o.seedCallers))
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	o.serveFlags = strings.Fields(serveFlags)
	o.warmUp = !o.quick
	if !given["load-cases"] {
		loadNames = names
	}
	if o.quick {
		o.shrink(given)
		if !given["load-cases"] {
			loadNames = names[:1]
		}
	}
	var err error
	if o.cases, err = casesNamed(cases(), names); err != nil {
		return o, err
	}
	if o.loadCases, err = casesNamed(o.cases, loadNames); err != nil {
		return o, err
	}
	return o, o.check()
}

func (o *options) shrink(given map[string]bool) {
	if !given["warm-runs"] {
		o.warmRuns = quickWarmRuns
	}
	if !given["other-runs"] {
		o.otherRuns = quickOtherRuns
	}
	if !given["language-runs"] {
		o.languageRuns = quickOtherRuns
	}
	if !given["load"] {
		o.load = quickLoad
	}
	if !given["idle"] {
		o.idle = quickIdle
	}
	if !given["callers"] {
		o.warmCallers = []int{1, 4}
	}
	if !given["seed-callers"] {
		o.seedCallers = []int{1}
	}
}

func (o *options) check() error {
	for _, p := range []struct {
		flag string
		ok   bool
	}{
		{"-pool-size", o.poolSize > 0},
		{"-other-runs", o.otherRuns > 0},
		{"-warm-runs (at least -other-runs)", o.warmRuns >= o.otherRuns},
		{"-language-runs", o.languageRuns >= 0},
		{"-load", o.load >= time.Second},
		{"-idle", o.idle > 0},
	} {
		if !p.ok {
			return fmt.Errorf("%s is out of range", p.flag)
		}
	}
	return nil
}

func words(into *[]string) func(string) error {
	return func(text string) error {
		*into = strings.Split(text, ",")
		return nil
	}
}

func numbers(into *[]int) func(string) error {
	return func(text string) error {
		*into = nil
		for _, word := range strings.Split(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number above zero", word)
			}
			*into = append(*into, n)
		}
		return nil
	}
}
