//go:build !unix

package server

import "math"

// openFiles is how many files this process may have open: no system of this kind bounds
// them for a process.
func openFiles() int { return math.MaxInt32 }
