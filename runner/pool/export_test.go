package pool

// The times of a pool, for tests that let them go by.
const (
	KillTimeout = killTimeout
	MaxAge      = maxAge
)
