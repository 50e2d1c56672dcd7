package runner

import "time"

// DataFolder is where code in a sandbox runs, and finds and leaves its files.
const DataFolder = "/mnt/data"

// Limits of one run. All sizes are bytes. The zero value of a field is not "no
// limit": DefaultLimits fills every one.
type Limits struct {
	Timeout  time.Duration // wall time of all cells together
	Memory   int64         // of all processes and tmpfs; there is no swap
	CPUs     float64       // cores
	Pids     int64         // processes and threads
	DataSize int64         // of /mnt/data
	TmpSize  int64         // of /tmp, which holds HOME too
	Inodes   int64         // of each of the two
	Output   int64         // of all outputs together
	Files    int           // how many files come back
	FileSize int64         // of all files that come back together
}

// DefaultLimits are the limits of a run whose caller asked for nothing else.
func DefaultLimits() Limits {
	return Limits{
		Timeout:  30 * time.Second, // a model waits for it, and so does a person behind it
		Memory:   2 << 30,          // a data frame of a few hundred MB, copied twice
		CPUs:     1,                // what a plot needs; more only starves the neighbours
		Pids:     256,              // an idle harness and kernel are about 20; joblib adds tens
		DataSize: 512 << 20,        // the largest upload
		TmpSize:  256 << 20,        // caches and HOME
		Inodes:   65536,            // a million empty files must end before memory does
		Output:   8 << 20,          // far above what a model can read
		Files:    200,
		FileSize: 512 << 20,
	}
}
