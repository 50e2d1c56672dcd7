package session

// The deadlines, for tests that let that time go by.
const (
	RestartTimeout = restartTimeout
	FileTimeout    = fileTimeout
	MaxFileTime    = maxFileTime
)
