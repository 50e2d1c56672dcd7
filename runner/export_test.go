package runner

// The deadlines, for tests that let that time go by.
const (
	StartTimeout   = startTimeout
	KillTimeout    = killTimeout
	SendTimeout    = sendTimeout
	RunSlack       = runSlack
	CancelSlack    = cancelSlack
	CollectTimeout = collectTimeout
)
