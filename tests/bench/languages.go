package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"notebox/environments"
)

// polars is a set of dependencies that the image does not have.
const polars = "polars==1.*"

// LanguageReport is a print in one language, a sandbox of it waiting.
type LanguageReport struct {
	Language string  `json:"language"`
	Title    string  `json:"title"`
	Code     string  `json:"code"`
	Latency  Latency `json:"latency"`
	// OfPython is its p50 divided by Python's, in the same rounds.
	OfPython float64 `json:"of_python_p50"`
}

// printCases are a print in each language, as its environment's own cases have it, and
// one in Python with dependencies. The first is Python's. folder has the environments.
func printCases(folder string) ([]benchCase, error) {
	all, err := environments.Load("")
	if err != nil {
		return nil, err
	}
	var out []benchCase
	for _, e := range all {
		raw, err := os.ReadFile(filepath.Join(folder, e.Name, "testdata", "cases.json"))
		if err != nil {
			return nil, fmt.Errorf("run it where the sources are: %w", err)
		}
		var known struct{ Print struct{ Code, Stdout string } }
		if err := json.Unmarshal(raw, &known); err != nil {
			return nil, fmt.Errorf("environment %s: cases.json: %w", e.Name, err)
		}
		out = append(out, benchCase{
			name: e.Language, title: "print, " + e.Language, language: e.Language,
			code: known.Print.Code, text: []string{strings.TrimSuffix(known.Print.Stdout, "\n")},
		})
	}
	withPolars := out[0]
	withPolars.name, withPolars.title = "polars", "print, python with polars"
	withPolars.code = "import polars\n" + withPolars.code
	withPolars.dependencies = []string{polars}
	return append(out, withPolars), nil
}

// measureLanguages fills in the report's languages: every round has one run of each,
// so that they meet the same machine.
func (b *bench) measureLanguages(ctx context.Context) (err error) {
	all, err := printCases(b.environments)
	if err != nil {
		return err
	}
	var pool []string
	for _, c := range all[:len(all)-1] {
		pool = append(pool, c.language+"=1")
	}
	o := b.options
	o.serveFlags = append([]string{"--pool-size", strings.Join(pool, ","), "--pool-max", "1", "--pool-by-use", "1", "--max-sandboxes", fmt.Sprint(4 * len(all))}, o.serveFlags...)
	s, err := startService(ctx, o, b.folder, "languages", len(pool), inContainers...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), s.removeLayers()) }()
	callers := make([]*caller, len(all))
	for i, c := range all {
		if callers[i], err = newCaller(s.URL, c, ""); err != nil {
			return err
		}
		defer callers[i].close()
	}
	if _, err := callers[len(all)-1].once(ctx); err != nil { // which installs it
		return err
	}
	s.size++
	samples := make([][]time.Duration, len(all))
	for round := range b.languageRuns {
		for i := range all {
			if err := errors.Join(s.awaitIdle(ctx), sleep(ctx, quietTime)); err != nil {
				return err
			}
			took, err := callers[i].once(ctx)
			if err != nil {
				return err
			}
			if round > 0 || !b.warmUp {
				samples[i] = append(samples[i], took)
			}
		}
	}
	log.Printf("languages: %d rounds", b.languageRuns)
	b.report.Languages = languageReports(all, samples)
	return nil
}

// removeLayers takes away what the service has installed. It has ended.
func (s *service) removeLayers() error {
	images, err := exec.Command("docker", "images", "-q", "--no-trunc", "--filter", "label=notebox.service="+s.ID).Output()
	if err != nil {
		return fmt.Errorf("docker images: %w", err)
	}
	for _, id := range slices.Compact(strings.Fields(string(images))) {
		if out, err := exec.Command("docker", "rmi", "-f", id).CombinedOutput(); err != nil {
			return fmt.Errorf("docker rmi: %w: %s", err, out)
		}
	}
	return nil
}

func languageReports(all []benchCase, samples [][]time.Duration) []LanguageReport {
	var out []LanguageReport
	for i, c := range all {
		out = append(out, LanguageReport{Language: c.language, Title: c.title, Code: c.code, Latency: newLatency(samples[i])})
	}
	for i := range out {
		out[i].OfPython = ratio(out[i].Latency.P50, out[0].Latency.P50)
	}
	return out
}

func (r *Report) languageTable(t *strings.Builder) {
	if len(r.Languages) == 0 {
		return
	}
	t.WriteString("| one run, a sandbox waiting | p50 | p95 | of Python's, p50 |\n")
	t.WriteString("| --- | ---: | ---: | ---: |\n")
	for _, l := range r.Languages {
		fmt.Fprintf(t, "| %s | %s | %s | %s |\n", l.Title, duration(l.Latency.P50), duration(l.Latency.P95), part(l.OfPython))
	}
	t.WriteString("\n")
}

// languageTargets are what is promised of languages, each as a ratio to Python's print.
func (r *Report) languageTargets() (out []Target) {
	wanted := map[string]float64{"print, javascript": 1.5, "print, typescript": 1.5, "print, python with polars": 1.3}
	for _, l := range r.Languages {
		if want := wanted[l.Title]; want > 0 && l.OfPython > 0 {
			out = append(out, Target{l.Title + ": warm p50 of Python's, at most", want, l.OfPython, l.OfPython <= want})
		}
	}
	return out
}
