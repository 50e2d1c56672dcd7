package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// clockTicks a second in /proc/stat: USER_HZ, which is 100 on every architecture
// that Docker runs on.
const clockTicks = 100

// cpuTime is what all cores of the machine have spent since it was started.
type cpuTime struct {
	busy   float64 // seconds
	stolen float64 // seconds that a hypervisor gave to others
}

func readCPU() (cpuTime, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTime{}, fmt.Errorf("CPU time: %w", err)
	}
	return parseCPU(string(raw))
}

// parseCPU reads the first line of /proc/stat, see proc_stat(5): user, nice, system,
// idle, iowait, irq, softirq, steal; what comes after is contained in user and nice.
func parseCPU(stat string) (cpuTime, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return cpuTime{}, fmt.Errorf("CPU time: unknown line in /proc/stat: %q", line)
	}
	var ticks [8]float64
	for i := range ticks {
		n, err := strconv.ParseUint(fields[i+1], 10, 64)
		if err != nil {
			return cpuTime{}, fmt.Errorf("CPU time: /proc/stat: %w", err)
		}
		ticks[i] = float64(n)
	}
	return cpuTime{
		busy:   (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / clockTicks,
		stolen: ticks[7] / clockTicks,
	}, nil
}

func (c cpuTime) since(before cpuTime) cpuTime {
	return cpuTime{busy: c.busy - before.busy, stolen: c.stolen - before.stolen}
}
