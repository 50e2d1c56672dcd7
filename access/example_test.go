package access_test

import (
	"errors"
	"fmt"
	"time"

	"notebox/access"
)

func Example() {
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	key := access.NewKey() // shown to the caller, and forgotten
	keys, err := access.New([]access.Entry{
		access.NamedEntry("alice", access.Limits{CPUPerDay: time.Minute}, access.SecretOf(key)),
	}, access.Options{Now: func() time.Time { return noon }})
	if err != nil {
		fmt.Println(err)
		return
	}
	caller, err := keys.Caller(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		run, err := caller.BeginRun()
		if refused := (*access.Refusal)(nil); errors.As(err, &refused) {
			fmt.Println(refused, "- come back in", refused.RetryAfter)
			return
		}
		run.Charge(90 * time.Second)
		run.End()
	}
	// Output: this API key has used its 60 CPU-seconds of the day (UTC) - come back in 12h0m0s
}
