package runner

// The deadlines, for tests that let that time go by.
const (
	StartTimeout   = DefaultStartTimeout
	KillTimeout    = killTimeout
	SendTimeout    = sendTimeout
	RunSlack       = runSlack
	SessionSlack   = sessionSlack
	CancelSlack    = cancelSlack
	CollectTimeout = collectTimeout
	RestartTimeout = restartTimeout
	FileTimeout    = fileTimeout
	MaxFileTime    = maxFileTime
	WriteTimeout   = writeTimeout
)

// ExplainExitOfRun is for a test of what is logged.
var ExplainExitOfRun = explainExitOfRun

// Owners is how many owners an Admission remembers.
func Owners(a *Admission) int {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	return len(a.queue.owners)
}
