package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
)

const (
	// DefaultStartTimeout bounds a sandbox's start until it is ready: a second on an
	// idle host, many on one where all cores start one.
	DefaultStartTimeout = 60 * time.Second
	// killTimeout bounds the wait for a sandbox's end; what takes longer goes on
	// in the background.
	killTimeout = 15 * time.Second
)

// SingleUse is a Runner that gives each run a sandbox of its own.
type SingleUse struct {
	pool *Pool
}

// NewSingleUse returns a Runner with the sandboxes of a pool.
func NewSingleUse(p *Pool) *SingleUse { return &SingleUse{pool: p} }

// Run implements Runner. The sandbox's removal goes on after it has returned, in
// the background: no process of the run is left then, and nobody has to wait.
func (r *SingleUse) Run(ctx context.Context, spec Spec, events Sink) (*Outcome, error) {
	for asked := time.Now(); ; {
		out, err := r.try(ctx, spec, events, asked)
		// Its code had not begun; and one that was started for this run is never gone.
		if !errors.Is(err, errGone) {
			return out, err
		}
	}
}

func (r *SingleUse) try(ctx context.Context, spec Spec, events Sink, asked time.Time) (*Outcome, error) {
	began := time.Now()
	c, err := r.pool.take(ctx, spec.Owner, spec.Environment, spec.Limits, spec.WaitUntil)
	spec.Observe.tell(PhaseAcquire, began)
	if err != nil {
		if ctx.Err() != nil {
			return &Outcome{Status: StatusCancelled, Usage: Usage{Queue: time.Since(asked)}}, nil
		}
		return nil, err
	}
	defer r.pool.done(c)
	queue := time.Since(asked)
	out, err := c.run(ctx, spec, events)
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", spec.ID, c.sandbox.ID(), err)
	}
	out.Usage.Queue = queue
	return out, nil
}

// explainExit puts what a sandbox wrote before it ended into the log.
func explainExit(err error, log *slog.Logger) error {
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		log.Error("a sandbox ended by itself", "exit_code", exit.Code, "stderr", exit.Log)
	}
	return err
}

// explainExitOfRun is explainExit for a sandbox that had a job: of a traceback, the
// log has the places in the harness and not the messages, which may quote what is
// the user's.
func explainExitOfRun(err error, log *slog.Logger) error {
	exit := (*ExitError)(nil)
	if !errors.As(err, &exit) {
		return err
	}
	var places []string
	for line := range strings.Lines(exit.Log) {
		if place := tracebackPlace.FindString(line); place != "" {
			places = append(places, place)
		}
	}
	log.Error("a sandbox ended by itself", "exit_code", exit.Code, "traceback", places)
	return err
}

// tracebackPlace is a line of a Python traceback of the harness or its libraries.
var tracebackPlace = regexp.MustCompile(`^  File "/(opt/notebox|opt/venv|usr)/[^"]*", line \d+, in [\w<>]+`)
