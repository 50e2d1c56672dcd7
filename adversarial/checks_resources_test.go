package adversarial

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

var resourceChecks = map[string]Check{
	"host_processes_flat": hostProcessesFlat,
}

// hostProcessesFlat sends the case and counts, meanwhile, the processes and threads
// that all sandboxes of the service have on this machine.
func hostProcessesFlat(ctx context.Context, t *Trial) []Failure {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var most atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if n := int64(userThreads(t.Known)); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(settlePoll)
		}
	}()
	out := t.Send(ctx)
	cancel()
	<-done
	return append(out, taskFailures(most.Load())...)
}

func taskFailures(most int64) []Failure {
	// The case's sandbox has its limit; those that wait, and the neighbour's, have
	// some 20 tasks each.
	limit := int64(64 + (poolSize+2)*30)
	if most > limit {
		return []Failure{{Text: fmt.Sprintf("the code of all sandboxes had %d tasks on the host, more than %d", most, limit)}}
	}
	return nil
}
