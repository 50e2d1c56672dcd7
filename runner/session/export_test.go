package session

// The times of sessions, for tests that let them go by.
const (
	RestartTimeout = restartTimeout
	FileTimeout    = fileTimeout
	MaxFileTime    = maxFileTime
	MaxWait        = defaultMaxWait
	EvictAfter     = evictAfter
)
