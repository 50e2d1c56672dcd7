package provider

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"notebox/agent"
)

// RetryOptions are the bounds of Retry; zero fields have defaults.
type RetryOptions struct {
	Tries    int           // of one turn in all; 0 is DefaultTries
	Pause    time.Duration // before the second try, on average, doubled each time; 0 is DefaultPause
	MaxPause time.Duration // also of what Retry-After asks for; 0 is DefaultMaxPause
	Attempt  time.Duration // how long one try may take; 0 is DefaultAttempt
}

// Defaults of RetryOptions.
const (
	DefaultTries    = 5                      // with the pauses, some ten seconds: what a provider's hiccup takes
	DefaultPause    = 500 * time.Millisecond // as the makers' clients
	DefaultMaxPause = time.Minute            // rates are counted by the minute
	DefaultAttempt  = 5 * time.Minute        // a model that thinks hard
)

// Retry tries a turn again where its failure may pass. One that Retry-After puts off
// for longer than MaxPause is given up.
func Retry(p agent.Provider, o RetryOptions) agent.Provider {
	return &retry{p, RetryOptions{
		Tries: cmp.Or(o.Tries, DefaultTries), Pause: cmp.Or(o.Pause, DefaultPause),
		MaxPause: cmp.Or(o.MaxPause, DefaultMaxPause), Attempt: cmp.Or(o.Attempt, DefaultAttempt),
	}}
}

type retry struct {
	next agent.Provider
	o    RetryOptions
}

// Turn implements agent.Provider.
func (r *retry) Turn(ctx context.Context, p agent.Prompt, tell func(agent.Delta)) (*agent.Turn, error) {
	// Spread, so that many who failed together do not come back together.
	pauses := backoff.ExponentialBackOff{InitialInterval: r.o.Pause, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: r.o.MaxPause}
	for try := 1; ; try++ {
		told := false
		turn, err := r.attempt(ctx, p, func(d agent.Delta) { told = true; tell(d) })
		var failed *Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
			return turn, err
		}
		failed.Tries = try
		pause := min(pauses.NextBackOff(), r.o.MaxPause)
		if failed.RetryAfter > 0 {
			pause = failed.RetryAfter
		}
		if !failed.passes || try >= r.o.Tries || pause > r.o.MaxPause {
			return nil, err
		}
		if told {
			tell(agent.Delta{Again: true})
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *retry) attempt(ctx context.Context, p agent.Prompt, tell func(agent.Delta)) (*agent.Turn, error) {
	within, cancel := context.WithTimeout(ctx, r.o.Attempt)
	defer cancel()
	turn, err := r.next.Turn(within, p, tell)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, &Error{passes: true, cause: err}
	}
	return turn, err
}
