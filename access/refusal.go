package access

import "time"

// Reason says for what somebody was refused; it is short enough for a metric.
type Reason string

// The reasons.
const (
	ReasonKey         Reason = "key"                 // none, or one that is not known
	ReasonRequests    Reason = "requests_per_minute" // come back later
	ReasonRuns        Reason = "runs_at_once"        // come back later
	ReasonCPU         Reason = "cpu_seconds_per_day" // come back tomorrow
	ReasonSessions    Reason = "sessions"            // close one, or come back later
	ReasonEnvironment Reason = "environment"         // never, with this key
	ReasonNetwork     Reason = "network"             // never, with this key
)

// Refusal is the error of what a caller may not do, or not now.
type Refusal struct {
	Reason     Reason
	Field      string        // of the request, where the reason is in one; may be empty
	Message    string        // public
	RetryAfter time.Duration // when it may be otherwise; 0: it will not be
}

func (r *Refusal) Error() string {
	if r.Field != "" {
		return r.Field + ": " + r.Message
	}
	return r.Message
}
