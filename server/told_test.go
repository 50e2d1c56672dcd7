package server

import "time"

// What callers know of package executor's limits and words.
const (
	mostCommand   = 128<<10 - 1 // bytes
	mostWaiting   = 32          // runs, in one session
	mostText      = 256 << 10   // bytes
	longTextName  = "text.txt"
	refusalTime   = 50 * time.Millisecond
	toldOfRestart = "The kernel of this session was restarted: variables and imports are lost, files in /mnt/data are kept."
	toldToSave    = "save it below /mnt/data"
	storeAway     = "it could not be stored: the store does not answer"
)
