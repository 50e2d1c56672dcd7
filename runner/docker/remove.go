package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

const (
	// removeTimeout bounds one attempt to remove a container, and
	// removeRetry is the time between attempts in the background.
	removeTimeout = 30 * time.Second
	removeRetry   = 5 * time.Second
	// removeAttempts in the background: an hour. What is left then is reaped at
	// the next start, and ends by itself long before.
	removeAttempts = 720
	// settleTime is how long a container is looked for whose creation was not
	// answered.
	settleTime = time.Minute
)

// Reap implements runner.Engine.
func (e *Engine) Reap(ctx context.Context) (int, error) { return e.ReapOlder(ctx, 0) }

// ReapOlder is Reap of what is older than age: several processes that live for less may have one
// ServiceID. Age is by the daemon's clock, which has given the times.
func (e *Engine) ReapOlder(ctx context.Context, age time.Duration) (int, error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{
		All:     true,
		Filters: filters.NewArgs(filters.Arg("label", LabelService+"="+e.options.ServiceID)),
	})
	if err != nil {
		return 0, fmt.Errorf("list containers: %w", err)
	}
	now := time.Now()
	if age > 0 {
		about, err := e.About(ctx)
		if err != nil {
			return 0, err
		}
		if !about.Clock.IsZero() {
			now = about.Clock
		}
	}
	reaped, failed := 0, []error(nil)
	for _, c := range list {
		if now.Sub(time.Unix(c.Created, 0)) < age {
			continue
		}
		if len(c.Names) > 0 {
			if _, known := e.looksAfter(strings.TrimPrefix(c.Names[0], "/")); known {
				continue
			}
		}
		if err := e.remove(ctx, c.ID); err != nil {
			failed = append(failed, err)
			continue
		}
		if c.Labels[labelToken] == "" { // a worker is no sandbox
			reaped++
		}
	}
	return reaped, errors.Join(failed...)
}

// remove ends a container and waits until the daemon has forgotten it.
func (e *Engine) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	for {
		err := e.api.ContainerRemove(ctx, name, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			e.forget(name)
			return nil
		}
		if !errdefs.IsConflict(err) { // which is a removal that goes on already
			return fmt.Errorf("remove container: %w", err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("remove container: %w", ctx.Err())
		}
	}
}

// removeCreated removes in the background what create has made, or may have: err is what
// it came to.
func (e *Engine) removeCreated(name string, err error) {
	if errors.Is(err, errNotAsked) { // or each request to a service without a daemon would leave something to do
		e.forget(name)
		return
	}
	e.ending.Go(func() { e.removeUntilGone(name, errors.Is(err, errUnanswered)) })
}

// removeUntilGone removes as often as it takes. One whose creation was asked
// for and not answered is looked for again and again, as it may yet come to be.
func (e *Engine) removeUntilGone(name string, unanswered bool) {
	begun := time.Now()
	for attempt := range removeAttempts {
		err := e.remove(context.Background(), name)
		if err == nil && (!unanswered || time.Since(begun) > settleTime) {
			return
		}
		if err != nil && attempt == 0 {
			e.options.Log.Warn("a container could not be removed; trying again and again", "container", name, "error", err)
		}
		select {
		case <-time.After(removeRetry):
		case <-e.closing:
			unanswered = false
			time.Sleep(removeRetry)
		}
	}
}

// look has this process look after a container with these ids, as far as they are known.
func (e *Engine) look(name string, user ids) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[name] = user
}

func (e *Engine) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, name)
}

func (e *Engine) looksAfter(name string) (user ids, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	user, known = e.known[name]
	return user, known
}
