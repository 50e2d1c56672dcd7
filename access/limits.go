package access

import (
	"fmt"
	"strings"
	"time"
)

// None as Limits.Sessions allows not even one.
const None = -1

// Limits are what one caller may do. The zero value is no limit at all.
type Limits struct {
	RunsAtOnce        int           // that run or wait for their place; 0: no limit
	RequestsPerMinute int           // 0: no limit
	CPUPerDay         time.Duration // of all runs of a UTC day; 0: no limit
	Environments      []string      // by name or language; empty: all
	NoNetwork         bool          // not even where the operator allows it
	Sessions          int           // open at one time; 0: no limit, None: none
}

// String is the limits as they stand in a keys file.
func (l Limits) String() string {
	var words []string
	number := func(option string, n int) {
		if n > 0 {
			words = append(words, fmt.Sprintf("%s=%d", option, n))
		}
	}
	number(optionRuns, l.RunsAtOnce)
	number(optionRequests, l.RequestsPerMinute)
	number(optionCPU, int(l.CPUPerDay/time.Second))
	if len(l.Environments) > 0 {
		words = append(words, optionEnvironments+"="+strings.Join(l.Environments, ","))
	}
	if l.NoNetwork {
		words = append(words, optionNetwork+"=no")
	}
	if l.Sessions == None {
		words = append(words, optionSessions+"=no")
	}
	number(optionSessions, l.Sessions)
	return strings.Join(words, " ")
}
