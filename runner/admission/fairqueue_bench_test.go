package admission_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"notebox/runner"
	"notebox/runner/admission"
	"notebox/runner/runnertest"
)

// BenchmarkHandOver has a place go round among runs that all wait for it.
func BenchmarkHandOver(b *testing.B) {
	for _, owners := range []int{1, 1000} {
		b.Run(strconv.Itoa(owners)+" owners", func(b *testing.B) {
			const waiting = 1000
			a := admission.New(runFunc(func(context.Context) {}), admission.Limits{MaxRunning: 4, MaxWaiting: waiting, MaxWait: time.Hour})
			events := runnertest.NewRecorder(b)
			var all sync.WaitGroup
			for i := range waiting {
				spec := runner.Spec{Owner: strconv.Itoa(i % owners)}
				all.Go(func() {
					for range (b.N + waiting - 1) / waiting {
						_, _ = a.Run(b.Context(), spec, events)
					}
				})
			}
			all.Wait()
		})
	}
}
