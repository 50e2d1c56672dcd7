package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// writeTables writes the report in Markdown, as the README has it.
func (r *Report) writeTables(w io.Writer) error {
	var t strings.Builder
	r.tableHead(&t)
	r.latencyTable(&t)
	r.languageTable(&t)
	r.sustainedTable(&t)
	r.cellsTable(&t)
	r.memoryTable(&t)
	_, err := io.WriteString(w, t.String())
	return err
}

func (r *Report) tableHead(t *strings.Builder) {
	if r.Quick {
		t.WriteString("**A quick run: these figures show that the benchmark works, and nothing else.**\n\n")
	}
	m := r.Machine
	commit := ""
	if m.Commit != "" {
		commit = fmt.Sprintf(", commit %.12s", m.Commit)
		if m.CommitModified {
			commit += " with changes"
		}
	}
	fmt.Fprintf(t, "%s%s: %s, %d cores, %s of memory, Linux %s, Docker %s (%s, %s), image %s; %d sandboxes waiting.\n\n",
		r.Date.Format(time.DateOnly), commit, m.CPU, m.Cores, gigabytes(m.MemoryBytes), m.Kernel, m.Docker, m.Runtime, m.StorageDriver,
		m.Image, r.Settings.PoolSize)
}

func (r *Report) latencyTable(t *strings.Builder) {
	fmt.Fprintf(t, "Idle, the machine spends %.2f cores before, %.2f with full pools, %.2f at the end.\n\n", r.Idle.Bare, r.Idle.WithServices, r.Idle.AtTheEnd)
	t.WriteString("| one run | docker run, p50 | notebox, p50 | p95 | p99 | times faster, p50 | p99 | empty pool, p50 | p99 | times faster, p50 | session's step, p50 | p99 | of warm, p50 |\n")
	t.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.Cases {
		a, b, e, s := c.Latency[waySeed], c.Latency[wayWarm], c.Latency[wayEmpty], c.Latency[wayStep]
		fmt.Fprintf(t, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Title,
			duration(a.P50), duration(b.P50), duration(b.P95), duration(b.P99), times(c.FasterP50[wayWarm]), times(c.FasterP99[wayWarm]),
			duration(e.P50), duration(e.P99), times(c.FasterP50[wayEmpty]), duration(s.P50), duration(s.P99), part(c.StepOfWarm))
	}
	t.WriteString("\n")
}

func (r *Report) sustainedTable(t *strings.Builder) {
	t.WriteString("| sustained | callers | runs a second | CPU-seconds a run | of docker run's | p50 | p99 | refused |\n")
	t.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.Cases {
		for _, l := range c.Sustained[waySeed] {
			loadRow(t, c.Title+", docker run", l, "")
		}
		for i, l := range c.Sustained[wayWarm] {
			share := ""
			if i < len(c.CPUShare) {
				share = fmt.Sprintf("%.2f", c.CPUShare[i])
			}
			loadRow(t, c.Title+", notebox", l, share)
			if i < len(c.Sustained[wayCell]) {
				loadRow(t, c.Title+", notebox in cells", c.Sustained[wayCell][i], "")
			}
		}
	}
	t.WriteString("\n")
}

func (r *Report) cellsTable(t *strings.Builder) {
	c := r.Cells
	if c == nil {
		return
	}
	t.WriteString("| in cells, one run | p50 | p95 | p99 | times faster, p50 |\n")
	t.WriteString("| --- | ---: | ---: | ---: | ---: |\n")
	for _, k := range r.Cases {
		l := k.Latency[wayCell]
		fmt.Fprintf(t, "| %s | %s | %s | %s | %s |\n", k.Title, duration(l.P50), duration(l.P95), duration(l.P99), times(k.FasterP50[wayCell]))
	}
	fmt.Fprintf(t, "\nFirst answer %s after the program's start. %d cells wait %s after the first one, with %s of PSS each; a worker without its cells has %s, the service %s. Of %d requests at one time %d are answered, the last after %s.\n\n",
		duration(c.FirstAnswer), c.Cells, duration(c.Ready), megabytes(c.CellProportional), megabytes(c.WorkerProportional), megabytes(c.ServiceProportional),
		c.Requests, c.Answered, duration(c.LastAnswer))
}

func loadRow(t *strings.Builder, title string, l Load, share string) {
	fmt.Fprintf(t, "| %s | %d | %.2f | %.2f | %s | %s | %s | %d |\n",
		title, l.Callers, l.PerSecond, l.CPUPerRun, share, duration(l.P50), duration(l.P99), l.Refused)
}

func (r *Report) memoryTable(t *strings.Builder) {
	if len(r.Memory) == 0 {
		return
	}
	t.WriteString("| waiting sandboxes | resident, each | proportional (PSS), each | control group, each | shim outside, PSS, each |\n")
	t.WriteString("| ---: | ---: | ---: | ---: | ---: |\n")
	for _, m := range r.Memory {
		if m.Problem != "" {
			fmt.Fprintf(t, "| %d | %s | | | |\n", m.Sandboxes, m.Problem)
			continue
		}
		control := "not visible"
		if m.Control > 0 {
			control = megabytes(m.Control)
		}
		fmt.Fprintf(t, "| %d | %s | %s | %s | %s |\n", m.Sandboxes,
			megabytes(m.Resident), megabytes(m.Proportional), control, megabytes(m.ShimProportional))
	}
}

// duration shows three digits.
func duration(ms float64) string {
	switch {
	case ms == 0:
		return ""
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.2f s", ms/1000)
	}
}

// part shows a share of something; nothing if it was not measured.
func part(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}

func times(x float64) string {
	switch {
	case x == 0:
		return ""
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }

func gigabytes(n int64) string { return fmt.Sprintf("%.0f GB", float64(n)/(1<<30)) }
