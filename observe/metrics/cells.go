package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"notebox/runner/cells"
	"notebox/runner/pool"
)

// kindsOfSandboxes are the values of the label kind of isolation.
func kindsOfSandboxes() []string { return []string{"container", "cell"} }

// cellGauges are those of cells and their workers: zero if runs have containers.
type cellGauges struct {
	isolation, missing, cells, workers, lost *prometheus.Desc
	cellsMemory, workersMemory               *prometheus.Desc
}

func newCellGauges(desc func(name, help string, labels ...string) *prometheus.Desc) cellGauges {
	return cellGauges{
		isolation:     desc("isolation", "1 for what runs have, by kind.", "kind"),
		missing:       desc("missing_walls", "1 for the wall without which there can be no cells.", "wall"),
		cells:         desc("cells", "Cells now, by state.", "state"),
		workers:       desc("workers", "Workers of cells now, by state.", "state"),
		lost:          desc("workers_lost_total", "Workers of cells that ended by themselves, and all their cells with them."),
		cellsMemory:   desc("cells_memory_bytes", "Memory of all cells, by how it is counted.", "kind"),
		workersMemory: desc("workers_memory_bytes", "Memory of workers without their cells, by how it is counted.", "kind"),
	}
}

func (g *gauges) collectCells(out chan<- prometheus.Metric, put func(*prometheus.Desc, int, ...string), sandboxes pool.Stats) {
	one := map[bool]int{true: 1}
	for _, kind := range kindsOfSandboxes() {
		put(g.isolation, one[kind == g.sources.Isolation.Kind], kind)
	}
	for _, wall := range cells.Walls() {
		put(g.missing, one[wall == g.sources.Isolation.MissingWall], wall)
	}
	var now cells.Stats
	if g.sources.Cells != nil {
		now = g.sources.Cells()
	}
	put(g.cells, sandboxes.WarmCells, "waiting")
	put(g.cells, max(0, now.Cells-sandboxes.WarmCells), "in_use")
	for _, state := range cells.WorkerStates() {
		put(g.workers, now.Workers[state], string(state))
	}
	out <- prometheus.MustNewConstMetric(g.lost, prometheus.CounterValue, float64(now.Lost))
	bytes := func(d *prometheus.Desc, charged, pss int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(charged), "charged")
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(pss), "pss")
	}
	bytes(g.cellsMemory, now.CellsCharged, now.CellsPSS)
	bytes(g.workersMemory, now.WorkersCharged, now.WorkersPSS)
}
